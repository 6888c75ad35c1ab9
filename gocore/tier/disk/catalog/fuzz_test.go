package catalog

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"velocpy/gocore/base/allocs"
	"velocpy/gocore/model"
)

// version1 has the samples as in a batch: each is preceded by its length.
const version1 = "testdata/version-1"

var rewrite = flag.Bool("rewrite", false, "write the samples and the fuzz corpora anew")

// This version still writes and reads the recorded bytes.
func TestVersion1(t *testing.T) {
	var file []byte
	for _, record := range samples(t) {
		file = append(binary.LittleEndian.AppendUint32(file, uint32(len(record))), record...)
	}
	if *rewrite {
		must(t, os.WriteFile(version1, file, 0o644), writeCorpora(samples(t)))
	}
	if was, err := os.ReadFile(version1); err != nil || !slices.Equal(was, file) {
		t.Errorf("the samples are not those of version 1: %v", err)
	}
}

// writeCorpora writes the seeds of both targets: intact and damaged records, and rows of several shapes.
func writeCorpora(records [][]byte) error {
	var errs []error
	write := func(target, name string, values ...any) {
		text := "go test fuzz v1\n"
		for _, value := range values {
			if p, ok := value.([]byte); ok {
				text += fmt.Sprintf("[]byte(%q)\n", p)
			} else {
				text += fmt.Sprintf("%T(%#v)\n", value, value)
			}
		}
		dir := filepath.Join("testdata", "fuzz", target)
		errs = append(errs, os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for i, record := range append(slices.Clip(records), retainingBest(), putWithTime(), encodedPut(), differencePut()) {
		write("FuzzApply", fmt.Sprintf("record-%d", i), record, false)
		write("FuzzApply", fmt.Sprintf("cut-%d", i), record[:len(record)*2/3], false)
		write("FuzzApply", fmt.Sprintf("short-%d", i), shortened(record), true)
	}
	write("FuzzApply", "all", slices.Concat(records...), false)
	write("FuzzRecordRoundTrip", "number", "wave", "", int64(-7), uint64(1), "meta", "u", []byte{10, 0, 200, 255}, uint8(3))
	write("FuzzRecordRoundTrip", "text", "\xff", "best", int64(0), uint64(9), "", "", []byte{}, uint8(0))
	write("FuzzRecordRoundTrip", "encoded", "wave", "", int64(-7), uint64(1), "meta", "u", []byte{10, 0, 200, 255}, uint8(15))
	write("FuzzRecordRoundTrip", "difference", "wave", "", int64(-7), uint64(1), "meta", "u", []byte{10, 0, 200, 255}, uint8(23))
	write("FuzzRecordRoundTrip", "time", "wave", "", int64(1764057600123456789), uint64(1), "meta", "u", []byte{10}, uint8(7))
	return errors.Join(errs...)
}

// putWithTime is a record with a put that has a capture time, which no sample of version 1 has.
func putWithTime() []byte {
	l := &Layout{Layout: model.Layout{Slot: 100, Spans: []model.Span{{Offset: 0, Bytes: 100}}}}
	row := &Row{Key: model.NumberKey(5), Serial: 1, Time: 1764057600123456789, Extents: []Extent{{1, 0, Block}}, Meta: "m"}
	return appendPut(appendLayout(appendHistory(nil, 9, "wave"), 9, l), 9, 9, row)
}

// encodedPut is a record with an encoded put, which no sample of version 1 has: of a region with two containers and one with one.
func encodedPut() []byte {
	l := &Layout{Layout: model.Layout{Slot: 400000, Spans: []model.Span{{Offset: 0, Bytes: 300000}, {Offset: 300000, Bytes: 0}, {Offset: 300032, Bytes: 99968}}, Text: "uv"}}
	row := &Row{
		Key: model.NumberKey(5), Serial: 1, Time: 1764057600123456789, Content: Encoded, Encoding: &model.Encoding{Part: 262144, Lengths: []uint32{4096, 96, 208}},
		Extents: []Extent{{1, 0, Block}, {2, 0, Block}}, Sums: []uint64{1, 2, 3}, Leaves: []uint64{4, 5}, Meta: "m",
	}
	return appendPut(appendLayout(appendHistory(nil, 9, "wave"), 9, l), 9, 9, row)
}

// retainingBest is a record with a rule about the best checkpoints, which no sample of version 1 has.
func retainingBest() []byte {
	best := model.Best{Count: 3, By: []string{"val", "loss"}, Largest: true}
	return appendRetention(appendHistory(nil, 9, "best"), 9, &model.Retention{Last: 2, Keys: []model.Key{model.NumberKey(5)}, Best: best})
}

// shortened has two bytes for the head of an item, kind and length, so that any mutation still consists of items.
func shortened(record []byte) (short []byte) {
	for len(record) > 0 {
		i, rest, err := nextItem(record)
		if err != nil || len(i.body()) > 255 {
			break
		}
		short = append(append(short, byte(i.kind()), byte(len(i.body()))), i.body()...)
		record = rest
	}
	return short
}

func lengthened(short []byte) (record []byte) {
	for len(short) >= 2 {
		body := short[2:][:min(int(short[1]), len(short)-2)]
		record = append(record, encode(kind(short[0]), body)...)
		short = short[2+len(body):]
	}
	return record
}

// Any record is either refused without a trace, or survives a snapshot, and takes memory in proportion.
func FuzzApply(f *testing.F) {
	f.Fuzz(func(t *testing.T, record []byte, short bool) {
		if short {
			record = lengthened(record)
		}
		before := ask(t, defined(t))
		var s *State
		var err error
		most := 1<<20 + 40*uint64(len(record))
		if took := allocs.Least(most, func() { s = defined(t); err = s.Apply(record) }); took > most {
			t.Fatalf("%d bytes were allocated for a record of %d", took, len(record))
		}
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrVersion) {
				t.Fatal(err)
			}
			same(t, ask(t, s), before)
		}
		after := ask(t, s).used()
		again := applied(t, snapshot(t, s)...)
		same(t, ask(t, again), after)
		first, second := snapshot(t, s), snapshot(t, again)
		if !reflect.DeepEqual(first, second) {
			t.Fatal("the snapshot of a snapshot is another one")
		}
	})
}

// A record that a Writer accepts is found unchanged, at once and after a snapshot.
func FuzzRecordRoundTrip(f *testing.F) {
	f.Fuzz(func(t *testing.T, history, text string, number int64, serial uint64, meta, shape string, sizes []byte, known uint8) {
		row := Row{Key: model.NumberKey(number), Serial: serial, Meta: meta, Align: number & 0xffff, Layout: &Layout{Layout: model.Layout{Spans: []model.Span{}, Text: shape}}}
		if text != "" {
			row.Key = model.TextKey(text)
		}
		leaves := uint64(0)
		for _, size := range sizes {
			bytes := int64(size) * int64(size) * 17
			row.Layout.Spans = append(row.Layout.Spans, model.Span{Offset: row.Layout.Slot, Bytes: bytes})
			row.Layout.Slot += bytes + int64(size%3)
			leaves += leavesOf(bytes)
		}
		if known&1 != 0 {
			row.Sums = make([]uint64, len(sizes))
		}
		if known&4 != 0 {
			row.Time = max(number, 1)
		}
		if known&2 != 0 {
			row.Leaves = slices.Repeat([]uint64{serial}, int(leaves))
		}
		switch {
		case known&16 != 0:
			row.Content, row.Difference = Difference, &model.Difference{Lineage: serial, Number: uint32(len(sizes)), Data: (number & 0xff) * 16, Meta: 1 + number&0xfff}
			for i, size := range sizes[:min(len(sizes), model.MostSources)] {
				row.Difference.Sources = append(row.Difference.Sources, model.Source{Number: uint32(i), Data: int64(size) * 4096, Meta: 4096})
				row.Sources = append(row.Sources, []Extent{{1, int64(i) << 30, Block}, {2, int64(i) << 30, int64(size) * Block}}[:1+min(size, 1)])
			}
		case known&8 != 0:
			row.Content, row.Encoding = Encoded, &model.Encoding{Part: model.PartGrain, Lengths: []uint32{}}
			for _, s := range row.Layout.Spans {
				row.Encoding.Lengths = append(row.Encoding.Lengths, slices.Repeat([]uint32{96}, int(model.Containers(s.Bytes, model.PartGrain)))...)
			}
		}
		row.Extents = []Extent{{serial | 1, (number & 0xffff) * Block, row.Bytes()}}
		s := New()
		w := NewWriter(s)
		r := w.Record()
		if err := r.Put(history, &row); err != nil {
			if serial <= MostSerial && max(len(history), len(text)) <= MostName && max(len(shape), len(meta)) <= MostText || !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		must(t, w.Acknowledged(r))
		for _, s := range []*State{s, applied(t, snapshot(t, s)...)} {
			id, _ := s.History(history)
			got, ok := s.Find(id, row.Key)
			row.Layout.ID, row.History = got.Layout.ID, id
			if !ok || !reflect.DeepEqual(got, row) {
				t.Fatalf("%+v, not %+v", got, row)
			}
		}
	})
}
