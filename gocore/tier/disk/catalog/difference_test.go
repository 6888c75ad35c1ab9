package catalog

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"velocpy/gocore/model"
)

// differenceOf is a put of layout 1 with its own object of 32 bytes and 5 of metadata, number 9 of lineage 7; rest are its number of sources, and so on.
func differenceOf(flags uint8, rest ...any) []byte {
	return differenceAs(flags, 4096, 9, 32, 5, rest...)
}

func differenceAs(flags uint8, bytes uint64, number uint32, data, meta uint64, rest ...any) []byte {
	key := appendKey(nil, model.NumberKey(5))
	return encode(kindPut, body(uint32(1), uint32(1), uint64(11), uint8(2), flags, key, uint32(64), uint32(1), []uint64{1, 0, bytes},
		uint64(7), number, data, meta, body(rest...)))
}

// source is a source in a put, in one extent.
func source(number uint32, data, meta, bytes uint64) []byte {
	return body(number, data, meta, uint32(1), []uint64{2, 8192, bytes})
}

// differencePut is a record with a difference put, which no sample of version 1 has: with two sources, one of them in two extents.
func differencePut() []byte {
	l := &Layout{Layout: model.Layout{Slot: 400000, Spans: []model.Span{{Offset: 0, Bytes: 300000}, {Offset: 300032, Bytes: 99968}}, Text: "uv"}}
	row := &Row{
		Key: model.NumberKey(5), Serial: 1, Time: 1764057600123456789, Content: Difference,
		Difference: &model.Difference{Lineage: 0x1234567890abcdef, Number: 9, Data: 8192, Meta: 77, Sources: []model.Source{
			{Number: 3, Meta: 4096, Offset: 1 << 20}, {Number: 8, Data: 4096, Meta: 1, Offset: 1 << 30},
		}},
		Extents: []Extent{{1, 0, 3 * Block}}, Sources: [][]Extent{{{1, 1 << 20, Block}}, {{2, Block, Block}, {3, 0, Block}}},
		Sums: []uint64{1, 2}, Leaves: []uint64{4, 5}, Meta: "m",
	}
	return appendPut(appendLayout(appendHistory(nil, 9, "lineage"), 9, l), 9, 9, row)
}

// A difference put has the bytes that docs/format.md says.
func TestBytesOfDifferencePut(t *testing.T) {
	wants := slices.Concat(encode(kindHistory, body(uint32(9), "lineage")),
		encode(kindLayout, body(uint32(9), uint32(0), uint64(400000), uint32(2), uint32(0), []uint64{0, 300000, 300032, 99968}, "uv")),
		encode(kindPut, body(uint32(9), uint32(9), uint64(1), uint8(2), uint8(7), appendKey(nil, model.NumberKey(5)), uint64(1764057600123456789),
			uint32(0), uint32(1), []uint64{1, 0, 12288}, []uint64{1, 2}, []uint64{4, 5},
			uint64(0x1234567890abcdef), uint32(9), uint64(8192), uint64(77), uint32(2),
			uint32(3), uint64(0), uint64(4096), uint32(1), []uint64{1, 1 << 20, 4096},
			uint32(8), uint64(4096), uint64(1), uint32(2), []uint64{2, 4096, 4096, 3, 0, 4096},
			uint32(1), "m")))
	if got := differencePut(); !slices.Equal(got, wants) {
		t.Errorf("%x, not %x", got, wants)
	}
}

// The rows of differences are listed with their rooms alone.
func TestEachDifference(t *testing.T) {
	s := applied(t, samples(t)...)
	s.EachDifference(func(row Row) bool {
		t.Errorf("%+v is no difference", row)
		return true
	})
	s = applied(t, encodedPut())
	s.EachDifference(func(row Row) bool {
		t.Errorf("%+v is no difference", row)
		return true
	})
	s = applied(t, differencePut())
	id, _ := s.History("lineage")
	want, _ := s.Find(id, model.NumberKey(5))
	want.Time, want.Align, want.Sums, want.Leaves, want.Meta = 0, 0, nil, nil, ""
	var got []Row
	s.EachDifference(func(row Row) bool {
		got = append(got, row)
		return true
	})
	if !reflect.DeepEqual(got, []Row{want}) || len(want.Sources) != 2 || want.Difference.Sources[1].Bytes() != 4097 {
		t.Errorf("%+v, not %+v", got, want)
	}
	if n := s.Histories()[0].Bytes; n != 3*Block {
		t.Errorf("the history has %d bytes", n)
	}
}

// hostileDifferences are records with difference puts, and the errors that they give.
func hostileDifferences() []hostile {
	const most = math.MaxUint64
	many := func(n uint32) (all []byte) {
		for i := range n {
			all = append(all, source(i, 0, 1, 4096)...)
		}
		return all
	}
	return []hostile{
		{"", differenceOf(0, uint32(0), uint32(0))},
		{"", differenceOf(0, uint32(1), source(0, 0, 1, 4096), uint32(0))},
		{"", differenceOf(0, uint32(2), source(3, 4080, 16, 4096), source(8, 4096, 1, 8192), uint32(2), "me")},
		{"", differenceAs(0, 4096, 2000, 0, 1, uint32(1024), many(1024), uint32(0))},
		{"", differenceAs(0, 1<<31, 9, 0, 1<<31, uint32(0), uint32(0))},
		{"", differenceAs(0, 1<<60+4096, 9, 1<<60, 1, uint32(1), source(0, 1<<60, 1<<31, 1<<60+1<<31), uint32(0))},

		{"too short", differenceOf(0)},
		{"too short", differenceOf(0, uint32(1), source(0, 0, 1, 4096)[:40])},
		{"too short", differenceOf(0, uint32(math.MaxUint32), source(0, 0, 1, 4096), uint32(0))},
		{"too short", differenceOf(0, uint32(1), uint32(0), []uint64{0, 1}, uint32(math.MaxUint32), uint32(0))},
		{"left over", differenceOf(0, uint32(0), uint32(0), uint8(0))},
		{"left over", differenceOf(0, uint32(0), source(0, 0, 1, 4096), uint32(0))},
		{"flags 0x8", differenceOf(8, uint32(0), uint32(0))},
		{"31 bytes of containers", differenceAs(0, 4096, 9, 31, 5, uint32(0), uint32(0))},
		{"0 of metadata", differenceAs(0, 4096, 9, 32, 0, uint32(0), uint32(0))},
		{"2147483649 of metadata", differenceAs(0, 1<<31+4096, 9, 0, 1<<31+1, uint32(0), uint32(0))},
		{"-16 bytes of containers", differenceAs(0, 4096, 9, most-15, 5, uint32(0), uint32(0))},
		{"1152921504606846992 bytes of containers", differenceAs(0, 1<<60+4096, 9, 1<<60+16, 5, uint32(0), uint32(0))},
		{"-1 of metadata", differenceAs(0, 4096, 9, 32, most, uint32(0), uint32(0))},
		{"a put has 1025 sources", differenceAs(0, 4096, 2000, 0, 1, uint32(1025), many(1025), uint32(0))},
		{"number 9 of a lineage", differenceOf(0, uint32(1), source(9, 0, 1, 4096), uint32(0))},
		{"number 4 of a lineage, behind 4", differenceOf(0, uint32(2), source(4, 0, 1, 4096), source(4, 0, 1, 4096), uint32(0))},
		{"number 3 of a lineage, behind 4", differenceOf(0, uint32(2), source(4, 0, 1, 4096), source(3, 0, 1, 4096), uint32(0))},
		{"8 bytes of containers", differenceOf(0, uint32(1), source(0, 8, 1, 4096), uint32(0))},
		{"0 of metadata", differenceOf(0, uint32(1), source(0, 16, 0, 4096), uint32(0))},
		{"have 4096 bytes, not 8192", differenceOf(0, uint32(1), source(0, 4096, 1, 4096), uint32(0))},
		{"more than 4096", differenceOf(0, uint32(1), source(0, 4080, 16, 8192), uint32(0))},
		{"have 0 bytes, not 4096", differenceOf(0, uint32(1), uint32(0), []uint64{0, 1}, uint32(0), uint32(0))},
		{"in file 0", differenceOf(0, uint32(1), uint32(0), []uint64{0, 1}, uint32(1), []uint64{0, 0, 4096}, uint32(0))},
		{"whole blocks", differenceOf(0, uint32(1), uint32(0), []uint64{0, 1}, uint32(1), []uint64{1, 1, 4096}, uint32(0))},
		{"beyond any file", differenceOf(0, uint32(1), uint32(0), []uint64{0, 1}, uint32(1), []uint64{1, most - 4095, 4096}, uint32(0))},
		{"have 4096 bytes, not 8192", differenceAs(0, 4096, 9, 4096, 5, uint32(0), uint32(0))},
		{"more than 4096", differenceAs(0, 8192, 9, 32, 5, uint32(0), uint32(0))},
		{"meta has 4294967295 bytes", differenceOf(0, uint32(0), uint32(math.MaxUint32))},
	}
}

// A Writer refuses rows whose difference, content and sources do not fit.
func TestWriterRefusesDifferences(t *testing.T) {
	row := func() *Row {
		return &Row{
			Key: model.NumberKey(1), Serial: 1, Layout: &Layout{Layout: model.Layout{Slot: 1}}, Extents: []Extent{{1, 0, Block}}, Content: Difference,
			Difference: &model.Difference{Number: 1, Meta: 1, Sources: []model.Source{{Meta: 1}}}, Sources: [][]Extent{{{1, Block, Block}}},
		}
	}
	r := NewWriter(New()).Record()
	must(t, r.Put("h", row()))
	for i, change := range []func(r *Row){
		func(r *Row) { r.Content = Raw },
		func(r *Row) { r.Content = Encoded },
		func(r *Row) { r.Content = EncodedSections },
		func(r *Row) { r.Content = Referring + 1 },
		func(r *Row) { r.Difference = nil },
		func(r *Row) { r.Content, r.Difference = Raw, nil },
		func(r *Row) { r.Encoding = &model.Encoding{Part: model.PartGrain} },
		func(r *Row) { r.Sources = nil },
		func(r *Row) { r.Sources = append(r.Sources, r.Sources[0]) },
		func(r *Row) { r.Sources[0] = nil },
		func(r *Row) { r.Sources[0] = []Extent{{1, Block, 2 * Block}} },
		func(r *Row) { r.Extents = []Extent{{1, 0, 2 * Block}} },
		func(r *Row) { r.Difference.Number = 0 },
		func(r *Row) { r.Difference.Meta = 0 },
	} {
		bad := row()
		change(bad)
		if err := r.Put("h", bad); err == nil {
			t.Errorf("change %d is taken", i)
		}
	}
}
