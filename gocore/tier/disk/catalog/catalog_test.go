package catalog

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"velocpy/gocore/model"
)

// everything is the content of a State, in a canonical order.
type everything struct {
	Histories  []HistoryInfo
	Rows       map[string][]Row
	Extents    map[uint64][]Extent
	Serial     uint64
	Unreadable int
}

func ask(t testing.TB, s *State) everything {
	t.Helper()
	all := everything{Histories: s.Histories(), Rows: map[string][]Row{}, Extents: map[uint64][]Extent{}, Serial: s.MaxSerial(), Unreadable: s.Unreadable()}
	slices.SortFunc(all.Histories, func(a, b HistoryInfo) int { return strings.Compare(a.Name, b.Name) })
	for i, h := range all.Histories {
		if id, ok := s.History(h.Name); !ok || id != h.ID {
			t.Fatalf("history %q is %d, not %d", h.Name, id, h.ID)
		}
		if name, ok := s.HistoryName(h.ID); !ok || name != h.Name {
			t.Fatalf("history %d is %q, not %q", h.ID, name, h.Name)
		}
		serials := map[model.Key]uint64{}
		s.EachKey(h.ID, func(k model.Key, serial uint64) bool {
			serials[k] = serial
			return true
		})
		s.Each(h.ID, func(row Row) bool {
			serial, ok := s.Serial(h.ID, row.Key)
			again, found := s.Find(h.ID, row.Key)
			if !ok || !found || serial != row.Serial || serials[row.Key] != serial || !reflect.DeepEqual(row, again) {
				t.Fatalf("row %v is found as %v, serials %d and %d", row, again, serial, serials[row.Key])
			}
			row.Layout = &Layout{Layout: model.Layout{Slot: row.Layout.Slot, Spans: row.Layout.Spans, Text: row.Layout.Text}} // ids do not matter
			row.History = 0
			all.Rows[h.Name] = append(all.Rows[h.Name], row)
			return true
		})
		if len(serials) != h.Rows || len(all.Rows[h.Name]) != h.Rows {
			t.Fatalf("history %q has %d rows, and gives %d and %d", h.Name, h.Rows, len(serials), len(all.Rows[h.Name]))
		}
		slices.SortFunc(all.Rows[h.Name], func(a, b Row) int {
			return strings.Compare(a.Key.String(), b.Key.String())
		})
		all.Histories[i].ID = 0
	}
	s.EachExtent(func(history uint32, serial uint64, e Extent) bool {
		all.Extents[serial] = append(all.Extents[serial], e)
		return true
	})
	return all
}

// used drops histories without content.
func (e everything) used() everything {
	e.Histories = slices.DeleteFunc(slices.Clone(e.Histories), func(h HistoryInfo) bool { return h.Rows == 0 && h.Retention == nil })
	return e
}

func same(t testing.TB, got, want everything) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("there is\n%+v\nwhere\n%+v\nbelongs", got, want)
	}
}

func applied(t testing.TB, records ...[]byte) *State {
	t.Helper()
	s := New()
	for _, record := range records {
		must(t, s.Apply(record))
	}
	return s
}

func snapshot(t testing.TB, s *State) [][]byte {
	t.Helper()
	var records [][]byte
	must(t, s.Snapshot(func(record []byte) error {
		records = append(records, slices.Clone(record))
		return nil
	}))
	return records
}

// samples are records that together have all kinds of content.
func samples(t testing.TB) [][]byte {
	t.Helper()
	w := NewWriter(New())
	var all [][]byte
	add := func(make func(r *Record)) {
		r := w.Record()
		make(r)
		must(t, w.Acknowledged(r))
		all = append(all, r.Bytes())
	}
	add(func(r *Record) {
		must(t, r.Put("wave", &Row{
			Key: model.NumberKey(-7), Serial: 1, Align: 64, Meta: "{\"t\": 0.5}",
			Layout:  &Layout{Layout: model.Layout{Slot: 10000, Spans: []model.Span{{Offset: 0, Bytes: 1000}, {Offset: 1000, Bytes: 0}, {Offset: 4096, Bytes: 5904}}, Text: "velocity pressure"}},
			Extents: []Extent{{1, 8192, 8192}, {3, 0, 4096}}, Sums: []uint64{1, 2, math.MaxUint64},
		}))
	})
	add(func(r *Record) {
		must(t, r.Put("wave", &Row{
			Key: model.TextKey("best \xff"), Serial: 2, Align: 4096, Layout: &Layout{Layout: model.Layout{Slot: 786432, Spans: []model.Span{{Offset: 0, Bytes: 524289}, {Offset: 524289, Bytes: 1}}}},
			Extents: []Extent{{2, 1 << 40, 786432}}, Sums: []uint64{5, 6}, Leaves: []uint64{7, 8, 9},
		}), r.Put("", &Row{Key: model.TextKey(""), Serial: 3, Layout: &Layout{}, Extents: []Extent{{9, 0, 4096}}}))
	})
	add(func(r *Record) {
		must(t, r.Retain("wave", &model.Retention{Named: true, Last: 3, Every: 100, Keys: []model.Key{model.NumberKey(5), model.TextKey("best")}}),
			r.Put("wave", &Row{
				Key: model.NumberKey(-7), Serial: 4, Align: 1 << 20, Layout: &Layout{Layout: model.Layout{Slot: 4096, Spans: []model.Span{{Offset: 0, Bytes: 4096}}, Text: "u"}},
				Extents: []Extent{{4, 4096, 4096}}, Leaves: []uint64{},
			}), r.Put("old", &Row{Key: model.NumberKey(1), Serial: 5, Layout: &Layout{Layout: model.Layout{Slot: 1}}, Extents: []Extent{{5, 0, 4096}}}),
			r.Clear("old", 5), r.Drop("wave", model.TextKey("nothing"), 5), r.Drop("", model.TextKey(""), 3))
	})
	unknown := appendKey([]byte{1, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 200, 255}, model.TextKey("codec"))
	all = append(all, slices.Concat(encode(kindPut, append(unknown, "whatever"...)), encode(200, []byte("skipped"))))
	return all
}

func encode(k kind, body []byte) []byte {
	p, start := beginItem(nil, k)
	return endItem(append(p, body...), start)
}

func TestSamples(t *testing.T) {
	s := applied(t, samples(t)...)
	got := ask(t, s)
	wave := []Row{
		{
			Key: model.TextKey("best \xff"), Serial: 2, Align: 4096, Layout: &Layout{Layout: model.Layout{Slot: 786432, Spans: []model.Span{{Offset: 0, Bytes: 524289}, {Offset: 524289, Bytes: 1}}}},
			Extents: []Extent{{2, 1 << 40, 786432}}, Sums: []uint64{5, 6}, Leaves: []uint64{7, 8, 9},
		},
		{Key: model.TextKey("codec"), Serial: 6, Content: 200, Layout: &Layout{Layout: model.Layout{Slot: 10000, Spans: []model.Span{{Offset: 0, Bytes: 1000}, {Offset: 1000, Bytes: 0}, {Offset: 4096, Bytes: 5904}}, Text: "velocity pressure"}}},
		{
			Key: model.NumberKey(-7), Serial: 4, Align: 1 << 20, Layout: &Layout{Layout: model.Layout{Slot: 4096, Spans: []model.Span{{Offset: 0, Bytes: 4096}}, Text: "u"}},
			Extents: []Extent{{4, 4096, 4096}}, Leaves: []uint64{},
		},
	}
	same(t, got, everything{
		Histories: []HistoryInfo{
			{Name: ""}, {Name: "old"},
			{
				Name: "wave", Rows: 3, Bytes: 786432 + 4096, Last: 6,
				Retention: &model.Retention{Named: true, Last: 3, Every: 100, Keys: []model.Key{model.NumberKey(5), model.TextKey("best")}},
			},
		},
		Rows:    map[string][]Row{"wave": wave},
		Extents: map[uint64][]Extent{2: wave[0].Extents, 4: wave[2].Extents}, Serial: 6, Unreadable: 1,
	})
	if wave[1].Readable() || !wave[0].Readable() {
		t.Error("rows of unknown content are readable, or those of known are not")
	}
	same(t, ask(t, applied(t, snapshot(t, s)...)), got.used())
	same(t, ask(t, s), got.used())
}

// A record that fails changes nothing, wherever it fails.
func TestFailingRecords(t *testing.T) {
	all := samples(t)
	for i, record := range all {
		s := applied(t, all[:i]...)
		before, size := ask(t, s), s.LiveBytes()
		for _, bad := range [][]byte{{1}, encode(99, nil), encode(kindPut, make([]byte, 100)), encode(kindRetention, slices.Repeat([]byte{255}, 28))} {
			if err := s.Apply(slices.Concat(record, bad)); !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			same(t, ask(t, s), before)
			if s.LiveBytes() != size || s.rows.live != s.rows.held && i < 3 {
				t.Fatalf("%d bytes are live of %d", s.LiveBytes(), size)
			}
		}
		must(t, s.Apply(record))
		same(t, ask(t, s), ask(t, applied(t, all[:i+1]...)))
	}
}

// A truncated or flipped record is refused and changes nothing, or it is another valid record that a snapshot can repeat.
func TestTruncatedAndFlipped(t *testing.T) {
	all := append(samples(t), differencePut(), encodedPut())
	refused, taken := 0, 0
	for i, record := range all {
		try := func(what string, bad []byte) {
			s := applied(t, all[:i]...)
			before := ask(t, s)
			if err := s.Apply(bad); err != nil {
				if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
					t.Fatalf("%s: %v", what, err)
				}
				refused++
				same(t, ask(t, s), before)
				return
			}
			taken++
			same(t, ask(t, applied(t, snapshot(t, s)...)), ask(t, s))
		}
		for n := range record {
			try(fmt.Sprintf("record %d up to %d", i, n), record[:n])
		}
		for bit := range 8 * len(record) {
			bad := slices.Clone(record)
			bad[bit/8] ^= 1 << (bit % 8)
			try(fmt.Sprintf("record %d with bit %d flipped", i, bit), bad)
		}
	}
	if refused < 1000 || taken < 1000 {
		t.Errorf("%d refused, %d taken: not both are tried", refused, taken)
	}
}

func TestSnapshotThatFails(t *testing.T) {
	s := applied(t, samples(t)...)
	want := ask(t, s)
	broken := errors.New("broken")
	for fail := 0; ; fail++ {
		n := 0
		err := s.Snapshot(func([]byte) error {
			if n++; n > fail {
				return broken
			}
			return nil
		})
		if err == nil {
			if fail < 2 {
				t.Errorf("the snapshot has %d records", fail)
			}
			break
		}
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
		same(t, ask(t, s), want)
	}
	same(t, ask(t, s), want.used())
}

// Rows of all sizes, most of which are dropped, are compacted in memory and keep their content.
func TestCompaction(t *testing.T) {
	s := New()
	w := NewWriter(s)
	layout := &Layout{Layout: model.Layout{Slot: 1}}
	for n := range 3000 {
		r := w.Record()
		row := &Row{Key: model.NumberKey(int64(n % 700)), Serial: uint64(n + 1), Layout: layout, Extents: []Extent{{1, 0, 4096}}, Meta: strings.Repeat("m", n*n%9999*(n%5))}
		must(t, r.Put("h", row), w.Acknowledged(r))
		if n%977 == 0 {
			before := ask(t, s)
			same(t, ask(t, applied(t, snapshot(t, s)...)), before)
			same(t, ask(t, s), before)
			if s.rows.held != s.rows.live {
				t.Fatalf("%d bytes are held of %d", s.rows.held, s.rows.live)
			}
		}
	}
	r := w.Record()
	must(t, r.Clear("h", 3000), w.Acknowledged(r))
	snapshot(t, s)
	if s.LiveBytes() != 0 || len(s.rows.chunks) != 0 || len(s.histories)+len(s.layouts) != 0 {
		t.Errorf("%d bytes and %d chunks are left", s.LiveBytes(), len(s.rows.chunks))
	}
}
