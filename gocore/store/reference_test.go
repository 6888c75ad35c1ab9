package store

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// drifting returns versions of floats of four bytes each, of which each moves by small steps.
func drifting(n, versions int) [][]byte {
	r := rand.New(rand.NewPCG(uint64(n), 4))
	p := make([]byte, n)
	all := make([][]byte, versions)
	for k := range all {
		for i := 0; i+4 <= n; i += 4 {
			step := 1e-6
			if k == 0 {
				step = 1
			}
			x := math.Float32frombits(binary.LittleEndian.Uint32(p[i:])) + float32(step*r.NormFloat64())
			binary.LittleEndian.PutUint32(p[i:], math.Float32bits(x))
		}
		all[k] = append([]byte(nil), p...)
	}
	return all
}

// Checkpoints that drift take a part of what their anchor takes. They come back when the anchor is gone, and after the store was opened again.
func TestReferencesOfDriftingFloats(t *testing.T) {
	const size, count = 1<<20 + 4096, 10
	states := drifting(size, count)
	fs := vfs.NewMem(256 << 20)
	cfg := stored(8<<20, 64<<20, fs)
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { shut(t, s) }()
	c := reducing(t, s, "reference")
	for k, p := range states {
		c.mustPutFloats(int64(k), p, status.TierDisk)
	}
	if f := c.reducedTo(); f.encoded != count || f.to > f.from*3/4 {
		t.Errorf("%+v", f)
	}
	c.drop(0)
	c.evict(5, 8<<20)
	c.mustGet(5, states[5], operation.RestoreArgs{})
	shut(t, s)
	if s, err = Open(cfg); err != nil {
		t.Fatal(err)
	}
	c = newClient(t, s, "h")
	for k := int64(count - 1); k > 0; k-- {
		c.mustGet(k, states[k], operation.RestoreArgs{Last: true})
	}
	drained(t, s)
}

// A damaged anchor is found by restores of what was encoded with it. What is written then needs nothing of it.
func TestADamagedReference(t *testing.T) {
	const size = 1 << 20
	states := drifting(size, 5)
	s := open(t, stored(8<<20, 64<<20, vfs.NewMem(256<<20)))
	c := reducing(t, s, "reference")
	for k, p := range states[:3] {
		c.mustPutFloats(int64(k), p, status.TierDisk)
	}
	if err := c.h.Corrupt(model.NumberKey(0), status.TierDisk, 300_000); err != nil {
		t.Fatal(err)
	}
	c.mustPutFloats(3, states[3], status.TierDisk)
	c.mustPutFloats(4, states[4], status.TierDisk)
	if f := c.reducedTo(); f.encoded < 4 || f.encoded+f.plain != 5 { // with less room than plain bytes need, the checkpoint is drafted again
		t.Errorf("%+v", f)
	}
	for k := range int64(3) {
		c.evict(k, 8<<20)
		_, _, err := c.get(k, size, operation.RestoreArgs{})
		if code := status.CodeOf(err); code != status.Corrupt {
			t.Errorf("checkpoint %d: %v", k, err)
		}
	}
	for k := int64(3); k < 5; k++ {
		c.evict(k, 8<<20)
		c.mustGet(k, states[k], operation.RestoreArgs{})
	}
}

// A method with references has neither chunks nor digests nor a compressor.
func TestReferencesHaveNoOptions(t *testing.T) {
	s := open(t, cached(8<<20, 64<<20, vfs.NewMem(256<<20)))
	c := newClient(t, s, "h")
	for _, r := range []Reduction{{Chunk: 1024}, {Digest: "xxh3"}, {Compressor: "zstd"}} {
		r.Method = "reference"
		if err := c.h.Reduce(r); status.CodeOf(err) != status.Invalid {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
