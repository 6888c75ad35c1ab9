package archive

import (
	"slices"
	"testing"
	"time"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
)

// slowFS is a file system that writes late.
type slowFS struct {
	vfs.FS
	each time.Duration // of a write
}

func (s slowFS) Open(name string, write, direct bool) (vfs.File, error) {
	f, err := s.FS.Open(name, write, direct)
	return slowFile{f, s.each}, err
}

type slowFile struct {
	vfs.File
	each time.Duration
}

func (s slowFile) WriteAt(p []byte, off int64) (int, error) {
	time.Sleep(s.each)
	return s.File.WriteAt(p, off)
}

// A push takes account of how long nodes have written for the one before it: a node that is slow writes nothing, or less, and the archive has the same.
func TestASlowNodeWritesLessOfTheNextPush(t *testing.T) {
	for _, leaders := range []int{1, 0}[:cases()] {
		r := newRun(t, 4)
		put := func(key int64) {
			for rank := range 4 {
				r.put(rank, place{"h", model.NumberKey(key)}, state{rank, int(key), 4<<20 + 4096*int64(rank)})
			}
		}
		g := r.together([]int{0, 1, 2, 2}, 1)
		g.slow = map[int]time.Duration{1: 5 * time.Millisecond} // a rank that is alone on its node, and leads
		wrote := map[int]int64{}
		g.before = func(plan *Plan) {
			for _, c := range plan.Copies {
				wrote[c.Leader] += c.End - c.From
				if !slices.Contains(plan.Files, FileLeader{c.File, c.Leader}) {
					t.Errorf("rank %d writes file %d, and does not lead it", c.Leader, c.File)
				}
			}
		}
		var paces Paces
		for key := range int64(2) {
			put(key)
			g.from = r.all()
			clear(wrote)
			done, err := g.push(Options{Files: 3, Leaders: leaders, Paces: paces})
			if err != nil || done.Keys != 1 {
				t.Fatal(done, err)
			}
			paces = g.paces
			if slow := key > 0; (wrote[1] == 0) != slow {
				t.Fatalf("leaders %d, key %d: rank 1 writes %d bytes, of %v, with the paces %v", leaders, key, wrote[1], wrote, paces)
			}
			g.require(r.complete(nil))
		}
	}
}

// cases is how many kinds of pushes are played.
func cases() int {
	if underRace {
		return 1
	}
	return 2
}
