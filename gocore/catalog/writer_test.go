package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"velocpy/gocore/plan"
)

func rowIn(serial uint64, text string) *Row {
	return &Row{Key: plan.Number(int64(serial)), Serial: serial, Layout: &Layout{Slot: 1, Text: text}, Extents: []Extent{{1, 0, 4096}}}
}

// A definition is in every record until one with it is durable, once in each; and again when a snapshot has left it out.
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
	log := snapshot(t, s) // keeps what the one on its way needs
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

// What a Writer remembers of layouts that are gone is bounded, and their ids are given to no others.
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

// A Writer refuses what Apply would refuse, and the record goes on without it.
func TestWriterRefuses(t *testing.T) {
	w := NewWriter(New())
	r := w.Record()
	long := strings.Repeat("x", MostName+1)
	for i, change := range []func(row *Row){
		func(row *Row) { row.Content = 1 },
		func(row *Row) { row.Layout = nil },
		func(row *Row) { row.Layout.Slot = -1 },
		func(row *Row) { row.Layout.Slot = MostSlot + 1 },
		func(row *Row) { row.Layout.Spans = []Span{{0, 2}} },
		func(row *Row) { row.Layout.Text = strings.Repeat("x", MostText+1) },
		func(row *Row) { row.Align = -1 },
		func(row *Row) { row.Align = 1 << 32 },
		func(row *Row) { row.Sums = []uint64{1} },
		func(row *Row) { row.Leaves = []uint64{1} },
		func(row *Row) { row.Extents = nil },
		func(row *Row) { row.Extents[0].Offset = -4096 },
		func(row *Row) { row.Meta = strings.Repeat("x", MostText+1) },
		func(row *Row) { row.Key = plan.Text(long) },
		func(row *Row) { row.Serial = MostSerial + 1 },
	} {
		row := rowIn(1, "")
		change(row)
		if err := r.Put("h", row); !errors.Is(err, ErrMalformed) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	for _, err := range []error{
		r.Put(long, rowIn(1, "")), r.Drop("h", plan.Text(long), 1), r.Drop("h", plan.Number(1), MostSerial+1), r.Clear("h", math.MaxUint64),
		r.Retain("h", &Retention{Keys: []plan.Key{plan.Text(long)}}),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Error(err)
		}
	}
	must(t, r.Put("h", rowIn(1, "")), w.Acknowledged(r))
	if _, ok := w.s.Find(1, plan.Number(1)); !ok {
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
