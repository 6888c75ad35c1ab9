package catalog

import (
	"slices"
	"testing"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
)

// A listing in pages of any size has all rows in the order of their puts, with their content.
func TestListingsInPages(t *testing.T) {
	s := New()
	w := NewWriter(s)
	var want []Row
	serial := uint64(0)
	put := func(history string, key model.Key, meta string, summed bool) {
		serial++
		l := &Layout{Layout: model.Layout{Slot: 2 * checksum.LeafBytes, Spans: []model.Span{{Offset: 0, Bytes: 8}, {Offset: 4096, Bytes: checksum.LeafBytes + 1}}, Text: "l"}}
		row := Row{Key: key, Serial: serial, Time: int64(serial % 3), Layout: l, Meta: meta, Extents: []Extent{{1, int64(serial) << 20, l.Slot}}}
		if serial%4 == 0 { // a region of two containers, and one of one
			row.Content, row.Encoding = Encoded, &model.Encoding{Part: checksum.LeafBytes, Lengths: []uint32{96, uint32(serial%9+1) * 4096, 16}}
			row.Extents[0].Bytes = row.Bytes()
		}
		if serial%4 == 1 {
			row.Content, row.Difference = Difference, &model.Difference{Number: 2, Data: int64(serial) * 16, Meta: 1, Sources: []model.Source{{Number: 1, Meta: 9}}}
			row.Extents[0].Bytes, row.Sources = row.Bytes(), [][]Extent{{{1, 0, Block}}}
		}
		if summed {
			row.Sums, row.Leaves = []uint64{1, 2}, []uint64{3, 4}
		}
		r := w.Record()
		if err := r.Put(history, &row); err != nil {
			t.Fatal(err)
		}
		if err := w.Acknowledged(r); err != nil {
			t.Fatal(err)
		}
		if history == "a" {
			want = slices.DeleteFunc(want, func(old Row) bool { return old.Key == key })
			want = append(want, row)
		}
	}
	for i := range int64(300) {
		put("a", model.NumberKey(i%200), string(make([]byte, i)), i%2 == 0)
		put("b", model.NumberKey(i), "", true)
		put("a", model.TextKey(string(rune('a'+i%7))), "m", true)
	}
	a, _ := s.History("a")
	for _, page := range []int{1, 2, 17, 1000} {
		var got []Brief
		for from, more := Cursor(0), true; more; {
			n := 0
			from, more = s.List(a, from, func(b Brief) bool {
				if n++; n > page {
					return false
				}
				got = append(got, b)
				return true
			})
		}
		if len(got) != len(want) {
			t.Fatalf("%d rows, not %d", len(got), len(want))
		}
		for i, b := range got {
			r := want[i]
			if b.Key != r.Key || b.Serial != r.Serial || b.Time != r.Time || b.Meta != len(r.Meta) || b.Summed != (r.Sums != nil) || b.Layout.Text != "l" || b.Content != r.Content || b.Stored != r.Extents[0].Bytes {
				t.Fatalf("row %d is %+v, not %+v", i, b, r)
			}
			if b.Sources != len(r.Sources) || b.SourceBytes != int64(len(r.Sources))*Block {
				t.Fatalf("row %d is %+v, with sources %v", i, b, r.Sources)
			}
		}
	}
	if _, more := s.List(99, 0, func(Brief) bool { t.Error("a row of nothing"); return true }); more {
		t.Error("more of nothing")
	}
	if next, more := New().List(1, 0, nil); more || next != Cursor(refOf(0, 0)) {
		t.Error(next, more)
	}
}
