package segment

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier"
	"velocpy/gocore/tier/tiertest"
)

// Objects are larger than a segment, and of many pieces.
func TestObjects(t *testing.T) {
	for _, direct := range []bool{false, true} {
		for _, named := range []bool{false, true} {
			t.Run(fmt.Sprintf("direct %v named %v", direct, named), func(t *testing.T) {
				tiertest.Test(t, func(t tiertest.TB, _ uint64) *tiertest.Tier { return ofSpace(t, direct, named) })
			})
		}
	}
}

func ofSpace(t tiertest.TB, direct, named bool) *tiertest.Tier {
	writes := &vfs.Rule{Ops: vfs.OpWrite | vfs.OpAllocate, Err: unix.EIO}
	writes.Disable()
	fs := vfs.NewFaulty(vfs.NewMem(64<<20), writes)
	if err := fs.MkdirAll("/a"); err != nil {
		t.Fatalf("%v", err)
	}
	store := [16]byte{7}
	o := Options{FS: fs, Dir: "/a", Capacity: 1 << 20, SegmentBytes: 64 << 10, PieceBytes: 16 << 10, Direct: direct, Named: named}
	if named {
		o.Store = &store
	}
	s, err := Open(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &tiertest.Tier{
		Objects: &Objects{Space: s}, Room: o.Capacity, Most: 150_000, Piece: o.PieceBytes, Close: s.Close,
		Fail: func(on bool) {
			if on {
				writes.Enable()
			} else {
				writes.Disable()
			}
		},
	}
}

// A transfer costs one allocation for its source, and one for its sink, besides those of the space.
func TestAllocationsOfATransfer(t *testing.T) {
	s := mustOpen(t, small(vfs.NewMem(64<<20), true))
	if err := s.Write(0, buffer(Block, 0)); err != nil {
		t.Fatal(err)
	}
	p := buffer(Block, 0)
	wanted := func() bool { return true }
	var objects tier.Objects = &Objects{Space: s}
	through := testing.AllocsPerRun(100, func() {
		source, _ := objects.Open(tier.Object{Bytes: Block})
		sink, _ := objects.Create(tier.Object{Offset: Block, Bytes: Block}, wanted)
		if source.Read(0, p, nil) != nil || sink.Write(0, p) != nil || sink.Commit() != nil {
			t.Error("it failed")
		}
	})
	plain := testing.AllocsPerRun(100, func() {
		if s.ReadPieces(0, p, nil) != nil || s.WriteWhile(wanted, Block, p) != nil {
			t.Error("it failed")
		}
	})
	if through > plain+2 {
		t.Errorf("%v allocations, and %v without source and sink", through, plain)
	}
}
