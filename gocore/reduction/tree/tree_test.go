package tree

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/digest"
)

var function = digest.New(digest.XXH3, 3)

// plain is the definition of a node's digest, by recursion from the node down.
func plain(leaves []digest.Digest, level, i int) digest.Digest {
	if level == 0 {
		return leaves[i]
	}
	left := plain(leaves, level-1, 2*i)
	if (2*i+1)<<(level-1) >= len(leaves) {
		return left
	}
	return function.Node(left, plain(leaves, level-1, 2*i+1))
}

func digests(t *rapid.T, n int, alphabet uint64, name string) []digest.Digest {
	list := make([]digest.Digest, n)
	for i := range list {
		list[i].Lo = rapid.Uint64Range(0, alphabet).Draw(t, name)
	}
	return list
}

// changes lists where b differs from a, and sometimes a leaf that does not.
func changes(t *rapid.T, a, b []digest.Digest) []Change {
	var list []Change
	for i, d := range b {
		if i >= len(a) || a[i] != d || rapid.IntRange(0, 9).Draw(t, "superfluous") == 0 {
			list = append(list, Change{i, d})
		}
	}
	return list
}

// However a region grew, shrank and changed, its tree is the one made at once, and the tree before stays as it was.
func TestNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var last *Tree
		var before []digest.Digest
		for range rapid.IntRange(1, 6).Draw(t, "versions") {
			leaves := slices.Clone(before)
			n := rapid.IntRange(0, 70).Draw(t, "n")
			if rapid.Bool().Draw(t, "same length") {
				n = len(before)
			}
			for i := len(leaves); i < n; i++ {
				leaves = append(leaves, digest.Digest{Lo: rapid.Uint64Range(0, 3).Draw(t, "leaf")})
			}
			leaves = leaves[:n]
			for range rapid.IntRange(0, 3).Draw(t, "edits") {
				if n > 0 {
					leaves[rapid.IntRange(0, n-1).Draw(t, "at")].Hi++
				}
			}
			next := last.Next(uint64(n)*32, n, changes(t, before, leaves), function)
			if last.Leaves() != len(before) || !slices.Equal(last.Level(0), before) {
				t.Fatalf("Next changed the tree before")
			}
			if next.Leaves() != n || next.Size() != uint64(n)*32 || len(next.levels) != Levels(n) {
				t.Fatalf("%d leaves: %d leaves, %d levels", n, next.Leaves(), len(next.levels))
			}
			for level, nodes := range next.levels {
				if len(nodes) != Count(n, level) {
					t.Fatalf("%d leaves: level %d has %d nodes", n, level, len(nodes))
				}
				for i, d := range nodes {
					if want := plain(leaves, level, i); d != want {
						t.Fatalf("%d leaves: node (%d, %d) is %x, want %x", n, level, i, d, want)
					}
				}
			}
			last, before = next, leaves
		}
	})
}

func TestUnchangedIsShared(t *testing.T) {
	a := (*Tree)(nil).Next(64, 2, []Change{{0, digest.Digest{Lo: 1}}, {1, digest.Digest{Lo: 2}}}, function)
	if a.Next(64, 2, nil, function) != a {
		t.Error("an unchanged region has a new tree")
	}
	if b := a.Next(63, 2, []Change{{1, digest.Digest{Lo: 3}}}, function); b == a || b.Size() != 63 {
		t.Error("a shorter region has the old tree")
	}
}

func TestShape(t *testing.T) {
	for _, c := range []struct{ n, levels, nodes int }{{0, 0, 0}, {1, 1, 1}, {2, 2, 3}, {3, 3, 6}, {4, 3, 7}, {5, 4, 11}, {8, 4, 15}, {9, 5, 20}} {
		if Levels(c.n) != c.levels || Bytes(c.n, true) != int64(c.nodes*16) || Bytes(c.n, false) != int64(c.n*16) {
			t.Errorf("%d leaves: %d levels, %d bytes", c.n, Levels(c.n), Bytes(c.n, true))
		}
	}
	for _, c := range []struct {
		size uint64
		want int
	}{{0, 0}, {1, 1}, {32, 1}, {33, 2}, {64, 2}} {
		if got := Chunks(c.size, 32); got != c.want {
			t.Errorf("Chunks(%d) = %d", c.size, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<40).Draw(t, "n")
		if Bytes(n, true) > (2*int64(n)+64)*16 {
			t.Fatalf("%d leaves: %d bytes", n, Bytes(n, true))
		}
	})
}

func TestRoot(t *testing.T) {
	list := []Change{{0, digest.Digest{Lo: 1}}, {1, digest.Digest{Lo: 2}}}
	if _, ok := (*Tree)(nil).Root(); ok {
		t.Error("no tree has a root")
	}
	if _, ok := (*Tree)(nil).Next(0, 0, nil, function).Root(); ok {
		t.Error("an empty region has a root")
	}
	if _, ok := (*Tree)(nil).Next(64, 2, list, nil).Root(); ok {
		t.Error("a tree without inner nodes has a root")
	}
	if d, ok := (*Tree)(nil).Next(64, 2, list, function).Root(); !ok || d != function.Node(list[0].Digest, list[1].Digest) {
		t.Error("the root of two leaves")
	}
	if d, ok := (*Tree)(nil).Next(32, 1, list[:1], nil).Root(); !ok || d != list[0].Digest {
		t.Error("the root of a leaf")
	}
}

func build(leaves []digest.Digest, f *digest.Function) *Tree {
	list := make([]Change, len(leaves))
	for i, d := range leaves {
		list[i] = Change{i, d}
	}
	return (*Tree)(nil).Next(uint64(len(leaves))*32, len(leaves), list, f)
}

// Compare against a plain loop, with and without inner nodes.
func TestCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := digests(t, rapid.IntRange(0, 60).Draw(t, "n"), 1, "a")
		b := digests(t, rapid.IntRange(0, 60).Draw(t, "m"), 1, "b")
		if rapid.Bool().Draw(t, "alike") {
			b = append(slices.Clone(a), b[:len(b)/8]...)
			for range rapid.IntRange(0, 3).Draw(t, "edits") {
				if len(b) > 0 {
					b[rapid.IntRange(0, len(b)-1).Draw(t, "at")].Hi++
				}
			}
		}
		var want []Range
		for i := range max(len(a), len(b)) {
			if i < len(a) && i < len(b) && a[i] == b[i] {
				continue
			}
			if n := len(want); n > 0 && want[n-1].End == i {
				want[n-1].End++
			} else {
				want = append(want, Range{i, i + 1})
			}
		}
		for _, f := range []*digest.Function{function, nil} {
			got, compared := Compare(build(a, f), build(b, f))
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
			if shared := min(len(a), len(b)); compared > 2*shared+7 || f == nil && shared > 1 && compared != shared {
				t.Fatalf("%d comparisons of %d leaves", compared, shared)
			}
		}
	})
}

func TestCompareIsShort(t *testing.T) {
	leaves := make([]digest.Digest, 1<<16)
	for i := range leaves {
		leaves[i].Lo = uint64(i)
	}
	a, b := build(leaves, function), build(leaves, function)
	if got, compared := Compare(a, b); got != nil || compared != 1 {
		t.Errorf("equal: %v with %d comparisons", got, compared)
	}
	leaves[12345].Hi = 1
	if got, compared := Compare(a, build(leaves, function)); !reflect.DeepEqual(got, []Range{{12345, 12346}}) || compared != 2*16+1 {
		t.Errorf("one leaf: %v with %d comparisons", got, compared)
	}
	if got, compared := Compare(a, a); got != nil || compared != 0 {
		t.Errorf("itself: %v with %d comparisons", got, compared)
	}
	if got, compared := Compare(build(leaves[:1], nil), build(leaves[:3], nil)); !reflect.DeepEqual(got, []Range{{1, 3}}) || compared != 1 {
		t.Errorf("a leaf and three: %v with %d comparisons", got, compared)
	}
	if got, compared := Compare(nil, a); !reflect.DeepEqual(got, []Range{{0, 1 << 16}}) || compared != 0 {
		t.Errorf("nothing: %v with %d comparisons", got, compared)
	}
}
