package catalog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"

	"pgregory.net/rapid"
)

// world is a store as the Writer sees it: a log, pending records, and the expected result as a plain map.
type world struct {
	t      *rapid.T
	log    [][]byte
	s      *State
	w      *Writer
	serial uint64
	coming []coming
	want   reference
}

type coming struct {
	record *Record
	effect []func(reference)
}

type reference map[string]*modelHistory

type modelHistory struct {
	rows      map[model.Key]Row
	retention model.Retention
}

func (m reference) of(name string) *modelHistory {
	if m[name] == nil {
		m[name] = &modelHistory{rows: map[model.Key]Row{}}
	}
	return m[name]
}

var names = rapid.SampledFrom([]string{"", "a", "b", "c\x00\xff"})

var keys = rapid.OneOf(
	rapid.Map(rapid.Int64Range(-3, 12), model.NumberKey), rapid.Map(rapid.Int64(), model.NumberKey),
	rapid.Map(rapid.SampledFrom([]string{"", "x", "a longer text", "\xff"}), model.TextKey))

// few are layouts that recur.
var few = []*Layout{{Layout: model.Layout{Slot: 1}}, {Layout: model.Layout{Slot: 5000, Spans: []model.Span{{Offset: 0, Bytes: 5000}}, Text: "u"}}}

func layouts() *rapid.Generator[*Layout] {
	return rapid.OneOf(rapid.SampledFrom(few), rapid.Custom(func(t *rapid.T) *Layout {
		l := &Layout{Layout: model.Layout{Spans: []model.Span{}, Text: rapid.StringN(0, 3, 9).Draw(t, "text")}}
		for range rapid.IntRange(0, 3).Draw(t, "regions") {
			l.Slot += rapid.Int64Range(0, 1).Draw(t, "gap") * 4096
			bytes := rapid.SampledFrom([]int64{0, 1, 4096, checksum.LeafBytes, checksum.LeafBytes + 1, 5 * checksum.LeafBytes}).Draw(t, "bytes")
			l.Spans = append(l.Spans, model.Span{Offset: l.Slot, Bytes: bytes})
			l.Slot += bytes
		}
		return l
	}))
}

func rowOf(t *rapid.T, l *Layout) *Row {
	row := &Row{Key: keys.Draw(t, "key"), Layout: l, Align: rapid.Int64Range(0, 1<<32-1).Draw(t, "align"), Meta: rapid.StringN(0, 5, 20).Draw(t, "meta")}
	row.Time = rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "time")
	switch rapid.SampledFrom([]Content{Raw, Encoded, Difference}).Draw(t, "content") {
	case Encoded:
		row.Encoding = encodingOf(t, l)
		row.Encoding.Sections = rapid.Bool().Draw(t, "sections")
	case Difference:
		row.Difference = differenceFor(t)
		row.Difference.Sections = rapid.Bool().Draw(t, "sections")
		for i := range row.Difference.Sources {
			row.Sources = append(row.Sources, extentsOf(t, int64(extentsBytes(row.Difference.Sources[i].Bytes()))))
		}
	}
	row.Content = ContentOf(row.Encoding, row.Difference)
	row.Extents = extentsOf(t, row.Bytes())
	leaves := 0
	for _, s := range l.Spans {
		leaves += int(leavesOf(s.Bytes))
	}
	hashes := func(n int) []uint64 {
		if rapid.Bool().Draw(t, "known") {
			return rapid.SliceOfN(rapid.Uint64(), n, n).Draw(t, "hashes")
		}
		return nil
	}
	row.Sums, row.Leaves = hashes(len(l.Spans)), hashes(leaves)
	return row
}

// extentsOf are extents of so many bytes.
func extentsOf(t *rapid.T, need int64) []Extent {
	all := []Extent{}
	for ; need > 0; need -= all[len(all)-1].Bytes {
		e := Extent{File: rapid.Uint64Min(1).Draw(t, "file"), Offset: rapid.Int64Range(0, 1<<50).Draw(t, "block") * Block}
		e.Bytes = rapid.Int64Range(max(1, need/Block/3), need/Block).Draw(t, "blocks") * Block
		all = append(all, e)
	}
	return all
}

// differenceFor is some difference.
func differenceFor(t *rapid.T) *model.Difference {
	data := func() int64 { return rapid.Int64Range(0, 1000).Draw(t, "data") * model.ContainerAlign }
	meta := func() int64 { return rapid.Int64Range(1, 9000).Draw(t, "metadata") }
	d := &model.Difference{Lineage: rapid.Uint64().Draw(t, "lineage"), Data: data(), Meta: meta()}
	for range rapid.IntRange(0, 3).Draw(t, "sources") {
		d.Number += rapid.Uint32Range(0, 5).Draw(t, "between")
		d.Sources = append(d.Sources, model.Source{Number: d.Number, Data: data(), Meta: meta()})
		d.Number++
	}
	return d
}

// encodingOf is some encoding of a layout.
func encodingOf(t *rapid.T, l *Layout) *model.Encoding {
	e := &model.Encoding{Part: model.PartGrain * rapid.Int64Range(1, 3).Draw(t, "part"), Lengths: []uint32{}}
	for _, s := range l.Spans {
		for left := s.Bytes; left > 0; left -= e.Part {
			most := uint32(model.ContainerBound(min(left, e.Part)) / model.ContainerAlign)
			e.Lengths = append(e.Lengths, model.ContainerAlign*rapid.Uint32Range(1, most).Draw(t, "length"))
		}
	}
	return e
}

// make makes a record of a few items.
func (v *world) make() {
	r := v.w.Record()
	c := coming{record: r}
	t := v.t
	for range rapid.IntRange(1, 4).Draw(t, "items") {
		name := names.Draw(t, "history")
		v.serial += rapid.Uint64Range(1, 3).Draw(t, "serials")
		serial := v.serial
		older := serial - min(serial, rapid.Uint64Range(0, 20).Draw(t, "older"))
		switch rapid.IntRange(0, 7).Draw(t, "item") {
		default:
			row := rowOf(t, layouts().Draw(t, "layout"))
			row.Serial = serial
			must(t, r.Put(name, row))
			c.effect = append(c.effect, func(m reference) { m.of(name).rows[row.Key] = *row })
		case 0:
			key := keys.Draw(t, "key")
			must(t, r.Drop(name, key, older))
			c.effect = append(c.effect, func(m reference) {
				if m.of(name).rows[key].Serial <= older {
					delete(m.of(name).rows, key)
				}
			})
		case 1:
			must(t, r.Clear(name, older))
			c.effect = append(c.effect, func(m reference) {
				maps.DeleteFunc(m.of(name).rows, func(_ model.Key, row Row) bool { return row.Serial <= older })
			})
		case 2:
			retention := model.Retention{Named: rapid.Bool().Draw(t, "named"), Last: rapid.Uint64Range(0, 1).Draw(t, "last"), Keys: rapid.SliceOfN(keys, 0, 2).Draw(t, "keep")}
			if len(retention.Keys) == 0 {
				retention.Keys = nil
			}
			if rapid.Bool().Draw(t, "best") {
				retention.Best = model.Best{
					Count: rapid.Uint64Range(1, 3).Draw(t, "count"), Largest: rapid.Bool().Draw(t, "largest"),
					By: rapid.SliceOfN(rapid.SampledFrom([]string{"", "val", "loss", "\xff"}), 1, 3).Draw(t, "by"),
				}
			}
			must(t, r.Retain(name, &retention))
			c.effect = append(c.effect, func(m reference) { m.of(name).retention = retention })
		}
		if rapid.IntRange(0, 9).Draw(t, "bad") == 0 { // a refused item leaves the record valid
			bad := rowOf(t, layouts().Draw(t, "bad layout"))
			switch {
			case bad.Difference != nil && rapid.Bool().Draw(t, "contradicts"):
				bad.Content = Raw
			case bad.Difference != nil && rapid.Bool().Draw(t, "odd"):
				bad.Sources = append(bad.Sources, bad.Extents)
			case bad.Difference != nil && rapid.Bool().Draw(t, "impossible"):
				bad.Difference.Data++
			case bad.Encoding != nil && rapid.Bool().Draw(t, "contradicts"):
				bad.Content = Raw
			case bad.Encoding != nil && rapid.Bool().Draw(t, "odd"):
				bad.Encoding.Lengths = append(bad.Encoding.Lengths, 16)
			case bad.Encoding == nil && bad.Difference == nil && rapid.Bool().Draw(t, "contradicts"):
				bad.Content = Encoded
			default:
				bad.Extents = nil
			}
			if r.Put(name, bad) == nil || r.Drop(name, bad.Key, MostSerial+1) == nil {
				t.Fatal("the Writer takes what cannot be read")
			}
		}
	}
	v.coming = append(v.coming, c)
}

// acknowledge makes the first pending record durable.
func (v *world) acknowledge() {
	if len(v.coming) == 0 {
		return
	}
	c := v.coming[0]
	v.coming = v.coming[1:]
	v.log = append(v.log, slices.Clone(c.record.Bytes()))
	for _, f := range c.effect {
		f(v.want)
	}
	must(v.t, v.w.Acknowledged(c.record))
}

// fail abandons the first pending records.
func (v *world) fail() {
	n := rapid.IntRange(0, len(v.coming)).Draw(v.t, "failing")
	for _, c := range v.coming[:n] {
		v.w.Abandoned(c.record)
		v.w.Abandoned(c.record)
	}
	v.coming = v.coming[n:]
}

// compact tries to replace the log with a snapshot.
func (v *world) compact() {
	var log [][]byte
	n := rapid.IntRange(0, 9).Draw(v.t, "records until it fails")
	err := v.s.Snapshot(func(record []byte) error {
		if n--; n < 0 {
			return fmt.Errorf("no room")
		}
		log = append(log, slices.Clone(record))
		return nil
	})
	if err == nil && rapid.Bool().Draw(v.t, "counts") { // otherwise the old log counts, although the State assumes the new one
		v.log = log
	}
}

// reopen restarts from the log, with some of the pending records in it.
func (v *world) reopen() {
	for n := rapid.IntRange(0, len(v.coming)).Draw(v.t, "came down"); n > 0; n-- {
		v.acknowledge()
	}
	v.coming = nil
	v.s = New()
	for i, record := range v.log {
		if err := v.s.Apply(record); err != nil {
			v.t.Fatalf("record %d of %d: %v", i, len(v.log), err)
		}
	}
	v.w = NewWriter(v.s)
}

func (v *world) check() {
	for name, h := range v.want {
		id, ok := v.s.History(name)
		if !ok && (len(h.rows) > 0 || !h.retention.None()) {
			v.t.Fatalf("history %q is not known", name)
		}
		got := map[model.Key]Row{}
		v.s.Each(id, func(row Row) bool {
			row.History, row.Layout = 0, &Layout{Layout: model.Layout{Slot: row.Layout.Slot, Spans: row.Layout.Spans, Text: row.Layout.Text}}
			got[row.Key] = row
			return true
		})
		if fmt.Sprintf("%+v", plain(got)) != fmt.Sprintf("%+v", plain(h.rows)) {
			v.t.Fatalf("history %q has\n%+v, not\n%+v", name, plain(got), plain(h.rows))
		}
	}
	bytes := map[string]int64{}
	for name, h := range v.want {
		for _, row := range h.rows {
			for _, e := range row.Extents {
				bytes[name] += e.Bytes
			}
		}
	}
	for _, info := range v.s.Histories() {
		h := v.want.of(info.Name)
		r := model.Retention{}
		if info.Retention != nil {
			r = *info.Retention
		}
		if info.Rows != len(h.rows) || info.Bytes != bytes[info.Name] || fmt.Sprintf("%#v", r) != fmt.Sprintf("%#v", h.retention) {
			v.t.Fatalf("history %+v, not %d rows, %d bytes, %v", info, len(h.rows), bytes[info.Name], h.retention)
		}
	}
}

// plain is a map without pointers, which prints the same for equal content.
func plain(rows map[model.Key]Row) map[string]string {
	m := map[string]string{}
	for k, row := range rows {
		l := *row.Layout
		e := "raw"
		if row.Encoding != nil {
			e = fmt.Sprintf("%+v", *row.Encoding)
		}
		if row.Difference != nil {
			e = fmt.Sprintf("%+v", *row.Difference)
		}
		row.Layout, row.Encoding, row.Difference = nil, nil, nil
		m[k.String()] = fmt.Sprintf("%+v %+v %v %s", row, l, []bool{row.Sums == nil, row.Leaves == nil}, e)
	}
	return m
}

// Any step may fail, and may leave a part of its effect. After every step and every restart, the State equals the durable records, and they can be read.
func TestWorld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := &world{t: t, s: New(), want: reference{}}
		v.w = NewWriter(v.s)
		t.Repeat(map[string]func(*rapid.T){
			"make":        func(*rapid.T) { v.make() },
			"acknowledge": func(*rapid.T) { v.acknowledge() },
			"catch up": func(*rapid.T) {
				for len(v.coming) > 0 {
					v.acknowledge()
				}
			},
			"fail":    func(*rapid.T) { v.fail() },
			"compact": func(*rapid.T) { v.compact() },
			"reopen":  func(*rapid.T) { v.reopen() },
			"":        func(*rapid.T) { v.check() },
		})
	})
}
