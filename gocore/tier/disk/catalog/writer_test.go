package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"velocpy/gocore/model"
)

func rowIn(serial uint64, text string) *Row {
	return &Row{Key: model.NumberKey(int64(serial)), Serial: serial, Layout: &Layout{Layout: model.Layout{Slot: 1, Text: text}}, Extents: []Extent{{1, 0, 4096}}}
}

// Every record has a definition, once, until a record with it is durable; and again after a snapshot has left it out.
func TestDefinitionsAreRepeated(t *testing.T) {
	s := New()
	w := NewWriter(s)
	record := func(serials ...uint64) *Record {
		r := w.Record()
		for _, n := range serials {
			must(t, r.Put("wave", rowIn(n, "shape")))
		}
		return r
	}
	defines := func(r *Record, want int) {
		t.Helper()
		if h, l := bytes.Count(r.Bytes(), []byte("wave")), bytes.Count(r.Bytes(), []byte("shape")); h != want || l != want {
			t.Fatalf("the record defines %d histories and %d layouts, not %d", h, l, want)
		}
	}
	failed, second := record(1), record(2, 3)
	defines(failed, 1)
	defines(second, 1)
	w.Abandoned(failed)
	third := record(4)
	defines(third, 1)
	must(t, w.Acknowledged(second), w.Acknowledged(third))
	defines(record(), 0)
	coming := record(5, 6)
	defines(coming, 0)

	drop := w.Record()
	must(t, drop.Clear("wave", 4), w.Acknowledged(drop))
	log := snapshot(t, s) // keeps the definitions that the pending record needs
	must(t, w.Acknowledged(coming))
	same(t, ask(t, applied(t, append(log, coming.Bytes())...)), ask(t, s))

	drop = w.Record()
	must(t, drop.Clear("wave", 6), w.Acknowledged(drop))
	log = snapshot(t, s)
	if len(s.histories)+len(s.layouts) != 0 {
		t.Fatal("definitions are kept that nothing needs")
	}
	again := record(7)
	defines(again, 1)
	must(t, w.Acknowledged(again))
	same(t, ask(t, applied(t, append(log, again.Bytes())...)), ask(t, s))
	if s.MaxSerial() != 7 || applied(t, log...).MaxSerial() != 6 {
		t.Error("the largest serial is not kept")
	}
}

// The Writer remembers a bounded number of unused layouts, and never assigns their ids to others.
func TestManyLayouts(t *testing.T) {
	s := New()
	w := NewWriter(s)
	ids := map[uint32]string{}
	for n := range uint64(1000) {
		r := w.Record()
		text := fmt.Sprint("shape ", n)
		must(t, r.Put("h", rowIn(n+1, text)))
		l := r.layouts[0]
		if was, ok := ids[l.ID]; ok {
			t.Fatalf("layout %d is %q, and was %q", l.ID, text, was)
		}
		ids[l.ID] = text
		if n%3 == 0 {
			w.Abandoned(r)
			continue
		}
		must(t, r.Clear("h", n+1), w.Acknowledged(r))
		if n%10 == 0 {
			snapshot(t, s)
		}
	}
	if len(w.layouts) > 2*fewLayouts+20 {
		t.Errorf("%d layouts are remembered", len(w.layouts))
	}
}

// New layouts are defined in records until they are in the State, however many come at once.
func TestManyNewLayoutsAtOnce(t *testing.T) {
	s := New()
	w := NewWriter(s)
	const n = 5 * fewLayouts
	var all []*Record
	for i := range uint64(n) {
		r := w.Record()
		must(t, r.Put("h", rowIn(i+1, fmt.Sprint("shape ", i))))
		all = append(all, r)
	}
	for _, r := range all {
		must(t, w.Acknowledged(r))
	}
	for i := range uint64(n) {
		r := w.Record()
		must(t, r.Put("h", rowIn(n+i+1, fmt.Sprint("shape ", i))))
		if count(t, r.Bytes(), kindLayout) != 0 {
			t.Fatalf("layout %d is defined again", i)
		}
		w.Abandoned(r)
	}
}

// A Writer refuses items that Apply would refuse, and the record continues without them.
func TestWriterRefuses(t *testing.T) {
	w := NewWriter(New())
	r := w.Record()
	long := strings.Repeat("x", MostName+1)
	for i, change := range []func(row *Row){
		func(row *Row) { row.Content = 1 },
		func(row *Row) { row.Content = 2 },
		func(row *Row) { row.Content, row.Encoding = 2, &model.Encoding{Part: model.PartGrain} },
		func(row *Row) { row.Encoding = &model.Encoding{Part: model.PartGrain} },
		func(row *Row) { row.Content, row.Encoding = Encoded, &model.Encoding{} },
		func(row *Row) {
			row.Content, row.Encoding = Encoded, &model.Encoding{Part: model.PartGrain, Lengths: []uint32{16}}
		},
		func(row *Row) { row.Layout = nil },
		func(row *Row) { row.Layout.Slot = -1 },
		func(row *Row) { row.Layout.Slot = MostSlot + 1 },
		func(row *Row) { row.Layout.Spans = []model.Span{{Offset: 0, Bytes: 2}} },
		func(row *Row) { row.Layout.Text = strings.Repeat("x", MostText+1) },
		func(row *Row) { row.Align = -1 },
		func(row *Row) { row.Align = 1 << 32 },
		func(row *Row) { row.Sums = []uint64{1} },
		func(row *Row) { row.Leaves = []uint64{1} },
		func(row *Row) { row.Extents = nil },
		func(row *Row) { row.Extents[0].Offset = -4096 },
		func(row *Row) { row.Meta = strings.Repeat("x", MostText+1) },
		func(row *Row) { row.Key = model.TextKey(long) },
		func(row *Row) { row.Serial = MostSerial + 1 },
	} {
		row := rowIn(1, "")
		change(row)
		if err := r.Put("h", row); !errors.Is(err, ErrMalformed) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	for _, err := range []error{
		r.Put(long, rowIn(1, "")), r.Drop("h", model.TextKey(long), 1), r.Drop("h", model.NumberKey(1), MostSerial+1), r.Clear("h", math.MaxUint64),
		r.Retain("h", &model.Retention{Keys: []model.Key{model.TextKey(long)}}),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
	}
	must(t, r.Put("h", rowIn(1, "")), w.Acknowledged(r))
	if _, ok := w.s.Find(1, model.NumberKey(1)); !ok {
		t.Error("the row is not there")
	}
}

func TestNoIDIsLeft(t *testing.T) {
	s := applied(t, encode(kindHistory, body(uint32(math.MaxUint32), "last")), encode(kindLayout, body(uint32(math.MaxUint32), make([]byte, 20), "last")))
	r := NewWriter(s).Record()
	if err := r.Put("h", rowIn(1, "")); !errors.Is(err, ErrExhausted) {
		t.Error(err)
	}
	if err := r.Put("last", rowIn(1, "")); !errors.Is(err, ErrExhausted) {
		t.Error(err)
	}
}

// With the repeated definitions before them, records need no others; to a State that has these, they add nothing.
func TestRepeatedDefinitions(t *testing.T) {
	s := New()
	w := NewWriter(s)
	first := w.Record()
	must(t, first.Put("wave", rowIn(1, "shape")), first.Put("tide", rowIn(2, "form")))
	if p := Repeated([]*Record{first}, math.MaxInt64); p != nil {
		t.Fatalf("%q is said twice in a batch", p)
	}
	must(t, w.Acknowledged(first))
	second, third := w.Record(), w.Record()
	must(t, second.Put("tide", rowIn(3, "form")), third.Put("tide", rowIn(4, "shape")), third.Put("wave", rowIn(5, "form")))
	batch := []*Record{second, third}
	p := Repeated(batch, math.MaxInt64)
	if again := Repeated(batch, int64(len(p))); !bytes.Equal(again, p) {
		t.Errorf("%q, and %q", p, again)
	}
	if less := Repeated(batch, int64(len(p))-1); len(less) >= len(p) || count(t, less, kindHistory) != 2 || count(t, less, kindLayout) != 1 || !bytes.Contains(less, []byte("form")) {
		t.Errorf("%q is left", less)
	}
	before := ask(t, s)
	must(t, s.Apply(p))
	same(t, ask(t, s), before)
	alone := applied(t, p, second.Bytes(), third.Bytes())
	must(t, w.Acknowledged(second), w.Acknowledged(third))
	for _, n := range []uint64{3, 4, 5} {
		name := map[bool]string{true: "wave", false: "tide"}[n == 5]
		id, _ := alone.History(name)
		if row, ok := alone.Find(id, model.NumberKey(int64(n))); !ok || row.Serial != n {
			t.Errorf("row %d of %q is not there", n, name)
		}
	}
}

// If any one record of a long snapshot is missing, the rows in the others are there.
func TestRecordsOfASnapshotNeedNoOther(t *testing.T) {
	s, records := snapshotOf(t, 60_000, numbered)
	if len(records) < 7 {
		t.Fatalf("%d records", len(records))
	}
	all := s.Histories()[0].Rows
	for missing, lost := range records {
		left := New()
		for at, record := range records {
			if at != missing {
				left.Define(record)
			}
		}
		for at, record := range records {
			if at != missing {
				must(t, left.Apply(record))
			}
		}
		want := all - count(t, lost, kindPut)
		if got := left.Histories()[0].Rows; got != want {
			t.Errorf("without record %d of %d: %d rows, not %d", missing, len(records), got, want)
		}
	}
}

// count counts the items of a kind in a record.
func count(t *testing.T, record []byte, k kind) (n int) {
	t.Helper()
	for len(record) > 0 {
		i, rest, err := nextItem(record)
		must(t, err)
		if i.kind() == k {
			n++
		}
		record = rest
	}
	return n
}
