package durable

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// lineage makes rows of differences of one lineage. Their objects are any bytes.
type lineage struct {
	rows map[uint32]*catalog.Row
	at   map[uint32]int64 // where objects lie
}

func newLineage() *lineage { return &lineage{map[uint32]*catalog.Row{}, map[uint32]int64{}} }

// row is the row of a checkpoint whose object has so many blocks, and lies at an offset of the space.
func (l *lineage) row(serial uint64, number uint32, blocks, at int64, sources ...uint32) *catalog.Row {
	d := &model.Difference{Lineage: 77, Number: number, Data: blocks*catalog.Block - 16, Meta: 9}
	for _, n := range sources {
		of := l.rows[n].Difference
		d.Sources = append(d.Sources, model.Source{Number: n, Data: of.Data, Meta: of.Meta, Offset: l.at[n]})
	}
	layout := &catalog.Layout{Layout: model.Layout{Slot: 100, Spans: []model.Span{{Bytes: 100}}}}
	row := &catalog.Row{Key: model.NumberKey(int64(number)), Serial: serial, Layout: layout, Align: 64, Sums: []uint64{0}, Content: catalog.Difference, Difference: d}
	l.rows[number], l.at[number] = row, at
	return row
}

// object writes the object of a row, and returns the change that puts the row.
func (s *site) object(row *catalog.Row, at int64) *Change {
	s.t.Helper()
	if err := s.d.Space().Write(at, pattern(row.Bytes(), byte(row.Serial))); err != nil {
		s.t.Fatal(err)
	}
	return &Change{History: "a", Put: row, Off: at}
}

func (s *site) drop(row *catalog.Row) {
	s.t.Helper()
	s.do(&Change{History: "a", Key: row.Key, Serial: row.Serial, Drop: true})
}

// occupied returns the ranges that are in use in a store, in blocks.
func occupied(c *contents) (all []run) {
	for from, end := range c.Occupied() {
		all = append(all, run{from / catalog.Block, end / catalog.Block})
	}
	return all
}

// The room of a source is in use as long as a row refers to it, and no longer.
func TestSharedRooms(t *testing.T) {
	s := newSite(t)
	l := newLineage()
	const big = 300 // blocks: more than a data file
	a := l.row(1, 0, big, 0)
	s.do(s.object(a, 0))
	b := l.row(2, 3, 2, (big+1)*catalog.Block, 0)
	s.do(s.object(b, l.at[3]))
	c := l.row(3, 4, 1, (big+4)*catalog.Block, 0, 3)
	s.do(s.object(c, l.at[4]))
	reopen := func(want ...run) {
		t.Helper()
		s.close()
		v, err := Read(s.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := occupied(v.contents); !slices.Equal(got, want) || v.Damage() != nil {
			t.Errorf("%v are in use, not %v: %v", got, want, v.Damage())
		}
		id, _ := v.State().History("a")
		v.State().Each(id, func(row catalog.Row) bool {
			d, err := v.Difference(&row)
			if err != nil || fmt.Sprintf("%+v", d) != fmt.Sprintf("%+v", l.rows[d.Number].Difference) {
				t.Errorf("%+v, not %+v: %v", d, l.rows[d.Number].Difference, err)
			}
			return true
		})
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		s.open()
		if got := occupied(s.d.contents); !slices.Equal(got, want) {
			t.Errorf("%v are in use, not %v", got, want)
		}
	}
	reopen(run{0, big}, run{big + 1, big + 3}, run{big + 4, big + 5})
	s.drop(a)
	reopen(run{0, big}, run{big + 1, big + 3}, run{big + 4, big + 5})
	s.close()
	if got, err := Collect(s.o, false); err != nil || len(got.Removed) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	s.open()
	p := make([]byte, a.Bytes())
	if err := s.d.Space().Read(0, p); err != nil || !bytes.Equal(p[:a.Stored()], pattern(a.Bytes(), 1)[:a.Stored()]) {
		t.Errorf("the bytes of a source are gone: %v", err)
	}
	s.drop(b)
	reopen(run{0, big}, run{big + 1, big + 3}, run{big + 4, big + 5})
	s.drop(c)
	reopen()
	s.close()
}

// Two rows without the one whose object they need have its room together, and the last of them frees it.
func TestARoomThatTwoSourcesShare(t *testing.T) {
	s := newSite(t)
	l := newLineage()
	a := l.row(1, 0, 1, 0)
	b := l.row(2, 1, 1, 2*catalog.Block, 0)
	c := l.row(3, 2, 1, 4*catalog.Block, 0)
	for _, x := range []*catalog.Row{a, b, c} {
		s.do(s.object(x, l.at[x.Difference.Number]))
	}
	s.drop(a)
	for _, want := range [][]run{{{0, 1}, {2, 3}, {4, 5}}, {{0, 1}, {4, 5}}, nil} {
		s.close()
		s.open()
		if got := occupied(s.d.contents); !slices.Equal(got, want) {
			t.Errorf("%v are in use, not %v", got, want)
		}
		if len(want) == 3 {
			s.drop(b)
		} else {
			s.drop(c)
		}
	}
	s.close()
}

// The bytes of a source that no row has are durable with the first row that refers to them.
func TestBytesOfSourcesAreSynced(t *testing.T) {
	s := newSite(t)
	l := newLineage()
	a := l.row(1, 0, 300, 1<<20)
	s.object(a, 1<<20) // its row never comes
	s.do(s.object(l.row(2, 1, 1, 0, 0), 0))
	after := s.fs.Crash(rand.New(rand.NewPCG(1, 2)), 0)
	o := s.o
	o.FS = after
	d := mustOpen(t, o)
	p := make([]byte, a.Bytes())
	if err := d.Space().Read(1<<20, p); err != nil || !bytes.Equal(p[:a.Stored()], pattern(a.Bytes(), 1)[:a.Stored()]) {
		t.Errorf("the bytes of a source are not there after a loss of power: %v", err)
	}
	if got, want := occupied(d.contents), []run{{0, 1}, {256, 556}}; !slices.Equal(got, want) {
		t.Errorf("%v are in use", got)
	}
	if err := errors.Join(d.Close(), s.d.Close()); err != nil {
		t.Fatal(err)
	}
}

// A checkpoint whose source lies where a sync failed is not durable, and neither is a later one.
func TestSourcesInASuspectSegment(t *testing.T) {
	s := newSite(t)
	s.close()
	faulty := vfs.NewFaulty(s.fs)
	rule := &vfs.Rule{Ops: vfs.OpSync, Name: segment.FileName(2), Err: unix.EIO, Times: 1}
	faulty.Add(rule)
	rule.Disable()
	mem := s.o
	s.o.FS = faulty
	s.open()
	l := newLineage()
	s.object(l.row(1, 0, 1, 1<<20), 1<<20)
	rule.Enable()
	for serial := uint64(2); serial < 4; serial++ {
		s.d.Commit(s.object(l.row(serial, uint32(serial), 1, int64(serial)*catalog.Block, 0), int64(serial)*catalog.Block))
		if c := <-s.landed; !errors.Is(c.Err, segment.ErrSuspect) {
			t.Errorf("version %d: %v", serial, c.Err)
		}
	}
	s.do(s.object(l.row(4, 5, 1, 8*catalog.Block), 8*catalog.Block))
	s.close()
	s.o = mem
	s.open()
	if got, want := occupied(s.d.contents), []run{{8, 9}}; !slices.Equal(got, want) {
		t.Errorf("%v are in use", got)
	}
	s.close()
}

// A change with a source that cannot lie there is refused, and nothing of it is written.
func TestImpossibleSources(t *testing.T) {
	s := newSite(t)
	l := newLineage()
	l.row(1, 0, 1, 0)
	for i, change := range []func(d *model.Difference){
		func(d *model.Difference) { d.Sources[0].Offset = -catalog.Block },
		func(d *model.Difference) { d.Sources[0].Offset = -64 << 20 },
		func(d *model.Difference) { d.Sources[0].Offset = 100 },
		func(d *model.Difference) { d.Sources[0].Offset = 1 << 60 },
		func(d *model.Difference) { d.Sources[0].Data = 1 << 60 },
		func(d *model.Difference) { d.Sources[0].Data = 1 },
		func(d *model.Difference) { d.Sources[0].Number = 9 },
	} {
		row := l.row(uint64(i+2), 9, 1, 0, 0)
		change(row.Difference)
		s.d.Commit(s.object(row, 0))
		if c := <-s.landed; !errors.Is(c.Err, segment.ErrRange) && !errors.Is(c.Err, model.ErrDifference) {
			t.Errorf("change %d: %v", i, c.Err)
		}
	}
	s.close()
	s.open()
	if got := occupied(s.d.contents); len(got) > 0 || s.d.Damage() != nil {
		t.Errorf("%v, %v", got, s.d.Damage())
	}
	s.close()
}

// Damage lists the acknowledged parts of the catalog that are missing.
func (d *Dir) Damage() error { return d.damage() }

// Of rows that contradict each other about a room the older one is lost, whether it is their own room or that of a source.
func TestRoomsThatContradictEachOther(t *testing.T) {
	const block = catalog.Block
	// plain is a row that shares its room with none, in the given blocks.
	plain := func(serial uint64, from, n int64) *catalog.Row {
		l := &catalog.Layout{Layout: model.Layout{Slot: n * block}}
		return &catalog.Row{Key: model.NumberKey(int64(100 + serial)), Serial: serial, Layout: l, Align: 64, Extents: newExtents(from*block, n*block)}
	}
	type made struct {
		*catalog.Row
		stays bool
	}
	for name, rows := range map[string]func(l *lineage) []made{
		"a source and the row whose object it is": func(l *lineage) []made {
			a := l.row(1, 0, 2, 0)
			return []made{{a, true}, {l.row(2, 1, 1, 4*block, 0), true}, {l.row(3, 2, 1, 6*block, 0), true}}
		},
		"a source partly under an older row": func(l *lineage) []made {
			l.row(2, 0, 2, 2*block)
			return []made{{plain(1, 3, 2), false}, {l.row(5, 1, 1, 9*block, 0), true}}
		},
		"a source partly under a newer row": func(l *lineage) []made {
			l.row(2, 0, 2, 2*block)
			return []made{{l.row(5, 1, 1, 9*block, 0), false}, {plain(6, 1, 2), true}}
		},
		"another object of the same length in the room of a source": func(l *lineage) []made {
			l.row(2, 0, 2, 2*block)
			return []made{{l.row(5, 1, 1, 9*block, 0), false}, {plain(6, 2, 2), true}, {plain(7, 9, 1), true}}
		},
		"a source in the room of an older checkpoint of the same length": func(l *lineage) []made {
			l.row(2, 0, 2, 2*block)
			return []made{{plain(1, 2, 2), false}, {l.row(5, 1, 1, 9*block, 0), true}}
		},
		"two sources that differ": func(l *lineage) []made {
			l.row(2, 0, 2, 2*block)
			old := l.row(5, 1, 1, 9*block, 0)
			l.row(2, 0, 2, 3*block)
			return []made{{old, false}, {l.row(6, 2, 1, 10*block, 0), true}}
		},
		"an object that two numbers have": func(l *lineage) []made {
			l.row(2, 0, 2, 2*block)
			old := l.row(5, 3, 1, 9*block, 0)
			l.row(2, 1, 2, 2*block)
			return []made{{old, false}, {l.row(6, 4, 1, 10*block, 1), true}}
		},
		"its own room for a source": func(l *lineage) []made {
			l.row(2, 0, 1, 2*block)
			return []made{{l.row(5, 1, 1, 2*block, 0), false}, {plain(1, 2, 1), true}}
		},
		"the room of a lost row's source": func(l *lineage) []made {
			l.row(2, 0, 2, 2*block)
			lost := l.row(5, 1, 1, 9*block, 0)
			return []made{{lost, false}, {plain(6, 9, 1), true}, {plain(1, 3, 1), true}}
		},
	} {
		s := newSite(t)
		s.close()
		l := newLineage()
		all := rows(l)
		want := map[model.Key]bool{}
		slices.SortFunc(all, func(a, b made) int { return cmp.Compare(a.Serial, b.Serial) })
		bad := false
		for _, x := range all {
			if x.Difference != nil {
				i := identity{segment: 1 << 20}
				i.locate(x.Row, l.at[x.Difference.Number])
			}
			if err := forged(forgedOf(x.Row))(s.o); err != nil {
				t.Fatal(err)
			}
			if bad = bad || !x.stays; x.stays {
				want[x.Key] = true
			}
		}
		v, err := Read(s.o)
		if err != nil {
			t.Fatal(err)
		}
		got := map[model.Key]bool{}
		id, _ := v.State().History("forged")
		v.State().Each(id, func(row catalog.Row) bool {
			got[row.Key] = true
			return true
		})
		if !maps.Equal(got, want) || (v.Damage() != nil) != bad {
			t.Errorf("%s: %v stay, not %v: %v", name, got, want, v.Damage())
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func newExtents(off, n int64) []catalog.Extent {
	i := identity{segment: 1 << 20}
	return i.extents(off, n)
}

// What a survey and an untangling say of random rows is what a comparison of each row with each newer one says.
func TestRandomRooms(t *testing.T) {
	tangled, shared := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		c := &contents{}
		c.identity, c.state = identity{segment: 16 << 10}, catalog.New()
		w := catalog.NewWriter(c.state)
		l := newLineage()
		var rows []*catalog.Row
		for serial := range uint64(2 + r.IntN(12)) {
			number := uint32(serial)
			var sources []uint32
			for n := range number {
				if l.rows[n] != nil && r.IntN(3) == 0 {
					sources = append(sources, n)
				}
			}
			space := []int64{40, 400}[seed%2]
			row := l.row(serial+1, number, 1+r.Int64N(5), r.Int64N(space)*catalog.Block, sources...)
			c.identity.locate(row, l.at[number])
			if r.IntN(3) > 0 {
				rows = append(rows, row)
			}
		}
		record := w.Record()
		for _, row := range rows {
			if err := record.Put("h", row); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Acknowledged(record); err != nil {
			t.Fatal(err)
		}
		var kept []*catalog.Row
		for _, row := range slices.Backward(rows) {
			if !slices.ContainsFunc(append(kept, row), func(other *catalog.Row) bool { return contradict(&c.identity, row, other) }) {
				kept = append(kept, row)
			}
		}
		_, err := c.survey()
		if (err == nil) != (len(kept) == len(rows)) {
			t.Fatalf("seed %d: %v, but %d of %d rows fit", seed, err, len(kept), len(rows))
		}
		if err != nil {
			tangled++
			if err := c.untangle(); err != nil {
				t.Fatal(err)
			}
		}
		runs, err := c.survey()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want, got := map[int64]bool{}, map[int64]bool{}
		for _, row := range kept {
			claims, _ := c.identity.claims(row)
			for _, x := range claims {
				for at := x.from; at < x.end; at += catalog.Block {
					if want[at] {
						shared++
					}
					want[at] = true
				}
			}
		}
		for _, x := range runs {
			for at := x.from; at < x.end; at += catalog.Block {
				got[at] = true
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: %v are in use, not %v", seed, got, want)
		}
	}
	if tangled < 100 || tangled > 300 || shared < 100 {
		t.Errorf("%d of 400 contradict themselves, and %d blocks are shared", tangled, shared)
	}
}

// contradict tells whether two rows, or one, cannot have their rooms.
func contradict(i *identity, a, b *catalog.Row) bool {
	all, _ := i.claims(a)
	others, _ := i.claims(b)
	for k, x := range all {
		for j, y := range others {
			overlap := x.from < y.end && y.from < x.end
			same := x.run == y.run && x.tenant == y.tenant && !(x.own && y.own)
			if overlap && !same && !(a == b && k == j) {
				return true
			}
			if a == b && k != j && overlap {
				return true
			}
		}
	}
	return false
}

// No writer commits a difference in a commit area. A last frame with one does not count, and does not keep the store from being written to.
func TestADifferenceInACommitArea(t *testing.T) {
	s := died(t, 3)
	before := s.rows()
	s.forgeAhead(forgedDifference(5, catalog.Extent{File: 5, Bytes: catalog.Block}))
	s.has(before, false)
	if sum := s.check(Scope{Data: true}); len(sum.Faults) > 0 || sum.Torn == 0 {
		t.Errorf("%+v", sum)
	}
	s.keeps(before, false)
}

// The writer of a small difference makes it durable without a commit area, and the next one of a raw checkpoint uses the area again.
func TestSmallDifferencesAndCommitAreas(t *testing.T) {
	s := busySite(t)
	l := newLineage()
	s.put("a", model.NumberKey(100), 5000)
	s.put("a", model.NumberKey(101), 5000)
	if len(s.d.tail.area.records) == 0 {
		t.Fatal("nothing is in the area")
	}
	s.do(s.object(l.row(3, 0, 1, s.next), s.next))
	if len(s.d.tail.area.records) > 0 {
		t.Error("a difference is in the area")
	}
	s.serial, s.next = 3, s.next+catalog.Block
	s.put("a", model.NumberKey(102), 5000)
	if len(s.d.tail.area.records) == 0 {
		t.Error("nothing is in the area any more")
	}
	want := s.copied().rows()
	s.close()
	s.has(want, false)
	if len(want) != 4 {
		t.Errorf("%d checkpoints", len(want))
	}
}
