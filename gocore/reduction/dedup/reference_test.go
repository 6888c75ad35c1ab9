package dedup

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/record"
)

// reference is the package's contract written a second time: with dense arrays, maps, and content in place of digests. It has no bounds on the record, no
// drops and no collisions.
type reference struct {
	chunk  int
	method difference.Method
	known  map[string]record.Place // content -> place
	before map[string][]byte
}

type referenceNode struct {
	region, level, index int
	label                byte // 0 fixed, 'F' first, 'S' shifted, 'X' does not consolidate
	place                record.Place
}

func (r *reference) content(b []byte, level, index int) string {
	from := index << level * r.chunk
	return string(b[from:min(from+r.chunk<<level, len(b))])
}

func (r *reference) add(number uint32, regions []Region) *difference.Difference {
	d := &difference.Difference{}
	own := map[string]record.Place{}
	leaves := make([][]referenceNode, len(regions))
	for i, region := range regions {
		for leaf := 0; leaf*r.chunk < len(region.Bytes); leaf++ {
			n := referenceNode{region: i, index: leaf}
			now := r.content(region.Bytes, 0, leaf)
			old, has := r.before[region.Name]
			place, recorded := r.known[now]
			if !recorded {
				place, recorded = own[now]
			}
			switch {
			case has && leaf*r.chunk < len(old) && r.content(old, 0, leaf) == now:
			case recorded:
				n.label, n.place = 'S', place
			default:
				n.label, n.place = 'F', record.Place{Checkpoint: number, Offset: uint64(len(d.Data)), Bytes: uint64(len(now))}
				own[now] = n.place
				d.Data = append(d.Data, now...)
			}
			leaves[i] = append(leaves[i], n)
		}
	}
	position := 0
	bases := make([]int, len(regions))
	for i := range regions {
		bases[i] = position
		position += len(leaves[i])
	}
	emit := func(n referenceNode) {
		e := difference.Entry{Position: uint64(bases[n.region] + n.index<<n.level), Extent: uint32(n.level)}
		if n.label == 'F' {
			d.First = append(d.First, e)
		} else if n.label == 'S' {
			d.Shifted = append(d.Shifted, difference.Shift{Entry: e, Checkpoint: n.place.Checkpoint, Offset: n.place.Offset})
		}
	}
	for _, label := range []byte{'F', 'S'} {
		for i, region := range regions {
			nodes := leaves[i]
			for len(nodes) > 1 && r.method == difference.Tree {
				var up []referenceNode
				for j := 0; j < len(nodes); j += 2 {
					n := nodes[j]
					n.level, n.index = n.level+1, n.index/2
					if j+1 < len(nodes) {
						now := r.content(region.Bytes, n.level, n.index)
						both := nodes[j].label == label && nodes[j+1].label == label
						place, ok := r.known[now]
						if !ok {
							place, ok = own[now]
						}
						switch {
						case both && label == 'F':
							n.place.Bytes = uint64(len(now))
							own[now] = n.place
						case both && ok:
							n.place = place
						default:
							n.label = 'X'
							for _, child := range nodes[j : j+2] {
								if child.label == label {
									emit(child)
								}
							}
						}
					}
					up = append(up, n)
				}
				nodes = up
			}
			for _, n := range nodes {
				if n.label == label {
					emit(n)
				}
			}
		}
	}
	for content, place := range own {
		r.known[content] = place
	}
	r.before = map[string][]byte{}
	for _, region := range clone(regions) {
		r.before[region.Name] = region.Bytes
	}
	slices.SortFunc(d.First, func(a, b difference.Entry) int { return cmp.Compare(a.Position, b.Position) })
	slices.SortFunc(d.Shifted, func(a, b difference.Shift) int { return cmp.Compare(a.Position, b.Position) })
	return d
}

// List and Tree give the entries and the first occurrences that the contract says, with any hash function.
func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		o.Method = pick(t, []difference.Method{difference.List, difference.Tree}, "list or tree")
		o.Record, o.MaxAge, o.MaxReferences = record.Memory(100000), 0, 0
		h := newHistory(t, o, rapid.Bool().Draw(t, "exact"))
		r := &reference{chunk: o.Chunk, method: o.Method, known: map[string]record.Place{}}
		var regions []Region
		for number := uint32(1); number <= 8; number++ {
			regions = edit(t, h, regions, o.Chunk)
			d, want := h.add(number, regions), r.add(number, regions)
			if string(d.Data) != string(want.Data) {
				t.Fatalf("checkpoint %d: %d first occurrences in bytes, want %d", number, len(d.Data), len(want.Data))
			}
			if fmt.Sprint(d.First) != fmt.Sprint(want.First) || fmt.Sprint(d.Shifted) != fmt.Sprint(want.Shifted) {
				t.Fatalf("checkpoint %d:\nfirst   %v\nwant    %v\nshifted %v\nwant    %v", number, d.First, want.First, d.Shifted, want.Shifted)
			}
			if n, _ := h.lineage.Recorded(); n != len(r.known) {
				t.Fatalf("checkpoint %d: %d entries in the record, want %d", number, n, len(r.known))
			}
		}
	})
}

// places lists the source of each chunk.
func places(m *difference.Map, chunk int) []string {
	var list []string
	for i := range m.Regions {
		l := &m.Regions[i]
		for at := uint64(0); at < l.Size; at += uint64(chunk) {
			l.Each(at, min(at+uint64(chunk), l.Size), func(r difference.Run, n uint64) bool {
				list = append(list, fmt.Sprint(l.Name, at, r.Checkpoint, r.Offset, n))
				return true
			})
		}
	}
	return list
}

// The form of the metadata changes no byte of the first occurrences, and no place of a byte. With room in the record, runs are never more than subtrees: the
// record has the leaves of each subtree that it has, at neighbouring places.
func TestMethodsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t)
		o.Record, o.MaxAge, o.MaxReferences = record.Memory(100000), 0, 0
		var all []*history
		for _, m := range []difference.Method{difference.List, difference.Runs, difference.Runs, difference.Tree} {
			o.Method, o.maxRun = m, 0
			all = append(all, newHistory(t, o, false))
			o.Blocks = !o.Blocks
		}
		var regions []Region
		for number := uint32(1); number <= 8; number++ {
			regions = edit(t, all[0], regions, o.Chunk)
			list, runs, same, tree := all[0].add(number, regions), all[1].add(number, regions), all[2].add(number, regions), all[3].add(number, regions)
			want := places(all[0].maps[number], o.Chunk)
			for _, h := range all[1:] {
				if got := places(h.maps[number], o.Chunk); !reflect.DeepEqual(got, want) {
					t.Fatalf("checkpoint %d: places\n%v, list's\n%v", number, got, want)
				}
			}
			if string(list.Data) != string(runs.Data) || string(list.Data) != string(tree.Data) {
				t.Fatalf("checkpoint %d: first occurrences differ", number)
			}
			if string(all[1].objects[number]) != string(all[2].objects[number]) {
				t.Fatalf("checkpoint %d: digests of blocks change the difference: %v %v", number, runs, same)
			}
			if len(runs.First) > len(tree.First) || len(tree.First) > len(list.First) {
				t.Fatalf("checkpoint %d: first occurrences: %d runs, %d subtrees, %d chunks", number, len(runs.First), len(tree.First), len(list.First))
			}
			if len(runs.Shifted) > len(tree.Shifted) || len(tree.Shifted) > len(list.Shifted) {
				t.Fatalf("checkpoint %d: shifted: %d runs, %d subtrees, %d chunks", number, len(runs.Shifted), len(tree.Shifted), len(list.Shifted))
			}
		}
	})
}

// A record that is full, or has no room at all, costs ratio: which entries it keeps is those offered first.
func TestRefusedInserts(t *testing.T) {
	a, b := noise(64*32), noise(128 * 32)[64*32:]
	for _, method := range []difference.Method{difference.List, difference.Tree, difference.Runs} {
		o := Options{Method: method, Chunk: 32, Record: record.Memory(40)}
		h := newHistory(t, o, false)
		h.add(1, []Region{{"a", a}})
		n, capacity := h.lineage.Recorded()
		if n != capacity || capacity < 40 {
			t.Fatalf("%s: %d entries of %d", method, n, capacity)
		}
		d := h.add(2, []Region{{"a", b}, {"b", a}})
		if want := len(b) + len(a) - capacity*32; len(d.Data) != want {
			t.Errorf("%s: %d bytes are stored, want %d: the first %d chunks are recorded", method, len(d.Data), want, capacity)
		}
		h.mustRestore(1)
		h.mustRestore(2)
		h = newHistory(t, o, false)
		h.add(1, []Region{{"a", a[:32*8]}, {"b", a[32*8:]}})
		if d := h.add(2, []Region{{"c", a[:32*8]}}); len(d.Data) > 0 {
			t.Errorf("%s: the chunks of the first region are not recorded first", method)
		}
		h = newHistory(t, Options{Method: method, Chunk: 32}, false)
		h.add(1, []Region{{"a", a}, {"b", a}})
		if d := h.add(2, []Region{{"a", b}, {"b", a}, {"c", b}}); len(d.Data) != len(b) {
			t.Errorf("%s without a record: %d bytes are stored, want %d", method, len(d.Data), len(b))
		}
		h.mustRestore(2)
	}
}

// Exact mode reports a source that it cannot read, and leaves the lineage as it was.
func TestVerifyFails(t *testing.T) {
	a := noise(100 * 32)
	for _, method := range []difference.Method{difference.Basic, difference.List, difference.Tree, difference.Runs} {
		h := newHistory(t, Options{Method: method, Chunk: 32, Record: 1 << 20}, true)
		h.add(1, []Region{{"a", a}})
		kept := h.objects[1]
		delete(h.objects, 1)
		if _, _, err := h.lineage.Dedup(2, []Region{{"a", a}}); err == nil || !isVerify(err) {
			t.Errorf("%s: %v, want ErrVerify", method, err)
		}
		h.objects[1] = kept
		if d := h.add(2, []Region{{"a", a}}); len(d.Data) > 0 || !d.HasBase {
			t.Errorf("%s: after an error the lineage changed", method)
		}
	}
}

// Both functions give equal differences, apart from checksums and the header.
func TestKindsAgree(t *testing.T) {
	a := noise(100*64 + 3)
	var got [][]difference.Shift
	for _, kind := range []digest.Kind{digest.XXH3, digest.Murmur3} {
		h := newHistory(t, Options{Method: difference.Tree, Chunk: 64, Kind: kind, Record: 1 << 20}, false)
		h.add(1, []Region{{"a", a}})
		d := h.add(2, []Region{{"b", a[64:]}, {"a", a}})
		if len(d.Data) > 0 || d.Kind != kind {
			t.Errorf("%s: %d bytes are stored", kind, len(d.Data))
		}
		got = append(got, d.Shifted)
	}
	if !reflect.DeepEqual(got[0], got[1]) {
		t.Errorf("%v, %v", got[0], got[1])
	}
}

// One goroutine and several write the same bytes, over regions of many segments, also at their boundaries.
func TestParallel(t *testing.T) {
	data := noise(3*SegmentBytes + 77)
	for _, method := range methods {
		for _, blocks := range []bool{false, true} {
			o := Options{Method: method, Chunk: 1024, Record: 1 << 22, Blocks: blocks, Seed: 4}
			one := newHistory(t, o, false)
			o.Parallel = parallel
			several := newHistory(t, o, false)
			b := append([]byte(nil), data...)
			for number := uint32(1); number < 4; number++ {
				regions := []Region{{"a", b}, {"none", nil}, {"b", b[:2*SegmentBytes]}, {"c", b[SegmentBytes-1 : SegmentBytes+1]}}
				one.add(number, regions)
				several.add(number, regions)
				if !slices.Equal(one.objects[number], several.objects[number]) {
					t.Fatalf("%s: checkpoint %d depends on the number of goroutines", method, number)
				}
				one.mustRestore(number)
				for _, at := range []int{SegmentBytes - 1, SegmentBytes, 2*SegmentBytes - 1, len(b) - 1, int(number) * 100000} {
					b[at]++
				}
				copy(b[SegmentBytes-4096:], b[:8192])
			}
		}
	}
}

// A region that moves by whole blocks has the digests of its blocks at other places.
func TestBlocksMove(t *testing.T) {
	data := noise(10 * blockBytes)
	for _, by := range []int{blockBytes, 3 * blockBytes, 9 * blockBytes, 64} {
		h := newHistory(t, Options{Method: difference.Runs, Chunk: 64, Record: 1 << 20, Blocks: true}, false)
		h.add(1, []Region{{"a", data}})
		d := h.add(2, []Region{{"a", append(append([]byte(nil), data[by:]...), data[:by]...)}})
		if len(d.Shifted) != 2 || len(d.Data) > 0 || d.HasBase {
			t.Errorf("moved by %d: %v, %d bytes are stored", by, d.Shifted, len(d.Data))
		}
		h.mustRestore(2)
	}
}

// Runs that an entry cannot hold are cut into entries; the places of all bytes stay.
func TestLongRuns(t *testing.T) {
	zeros := make([]byte, 32*22)
	data := noise(32 * 22)
	for _, c := range []struct {
		longest         uint32
		firsts, shifted int
	}{{0, 2, 2}, {7, 5, 7}, {1, 23, 43}, {21, 3, 3}, {10, 4, 6}} {
		h := newHistory(t, Options{Method: difference.Runs, Chunk: 32, Record: 1 << 20, maxRun: c.longest}, false)
		d := h.add(1, []Region{{"zeros", zeros}, {"data", data}, {"again", data}})
		if len(d.First) != c.firsts || len(d.Shifted) != c.shifted {
			t.Errorf("entries of at most %d: %v %v", c.longest, d.First, d.Shifted)
		}
		h.mustRestore(1)
	}
}
