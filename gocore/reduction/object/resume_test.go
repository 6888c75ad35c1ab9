package object

import (
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
)

// A writer that was resumed stores what has changed, and no more.
func TestResume(t *testing.T) {
	s := newTier(t, Options{Method: difference.Runs, Chunk: 64, Lineage: 8, Record: 1 << 20})
	defer s.close()
	now := []dedup.Region{{Name: "p", Bytes: make([]byte, 100_000)}}
	_, _ = rand.NewChaCha8([32]byte{1}).Read(now[0].Bytes)
	s.add(now)
	now[0].Bytes[500]++
	s.resume(s.add(now))
	now[0].Bytes[900]++
	d := s.draft(now)
	if d.Number() != 3 || d.Stored() != 64 || !slices.Equal(d.Sources(), []uint32{1, 2}) || d.form != formMap {
		t.Errorf("checkpoint %d stores %d bytes and has the sources %d, in form %d", d.Number(), d.Stored(), d.Sources(), d.form)
	}
	if err := s.writer.Resume(s.writer.lineage.Last(), now); err == nil {
		t.Error("a writer is resumed that has a checkpoint")
	}
}
