package store

import (
	"fmt"
	"testing"
	"time"

	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
)

// Borrowed sources that the caller's stream has not filled yet leave the workers to other transfers. The stream itself
// may wait for those transfers.
func TestDeferredSourcesDelayNoOtherTransfer(t *testing.T) {
	for _, disk := range []int64{0, 128 << 20} {
		t.Run(fmt.Sprintf("disk of %d", disk), func(t *testing.T) {
			b, gate := gated(t, double.Config{})
			s := open(t, b.config(64<<20, disk, 4<<20))
			c := newClient(t, s, "h")
			mine := b.stream
			b.stream = b.foreign()
			const size, late = 700_000, 5
			at := b.alloc(size)
			open := gate(b.stream)
			var outs []operation.Outcome
			b.fill(at, random(size, 1))
			for k := range int64(late) {
				outs = append(outs, c.stays(b, 1000+k, onDevice(at, size, 0)))
			}
			c.drop(1000)
			b.stream = mine
			var aside []*engine.Transfer
			eventually(t, "the workers come to them", func() bool {
				aside = putAside(s)
				return len(aside) >= late-1 // of the dropped one, the transfer may have begun
			})
			from := b.alloc(1 << 20)
			b.fill(from, random(1<<20, 2))
			for k := range int64(12) { // into a tier with room for four: eight have to be flushed meanwhile
				_, err := c.putOn(b, k, from, 1<<20)
				b.check(err)
			}
			for _, out := range outs[1:] {
				if c.state(out).Captured {
					t.Error("captured before it was filled")
				}
			}
			open()
			for k, out := range outs[1:] {
				b.check(c.wait(out.Ticket, -1))
				c.mustGet(int64(1001+k), random(size, 1), operation.RestoreArgs{})
			}
			drained(t, s)
			for _, x := range aside {
				if x.Aside {
					t.Errorf("%v was captured, and its transfer is put aside", x.Rec.Key)
				}
			}
		})
	}
}

// putAside returns the transfers that both the store and the engine know as waiting for their sources.
func putAside(s *Store) (all []*engine.Transfer) {
	s.Lock()
	defer s.Unlock()
	s.workers.EachDeferred(func(x *engine.Transfer) {
		if x.Aside {
			all = append(all, x)
		}
	})
	return all
}

// Close leaves nothing of them behind, whether or not the stream fills them before the store has gone.
func TestCloseWithDeferredSources(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("open before ", before), func(t *testing.T) {
			b, gate := gated(t, double.Config{})
			s, err := Open(b.config(64<<20, 0, 4<<20))
			b.check(err)
			c := newClient(t, s, "h")
			b.stream = b.foreign()
			at := b.alloc(300_000)
			open := gate(b.stream)
			for k := range int64(4) {
				c.stays(b, k, onDevice(at, 300_000, 0))
			}
			c.drop(0)
			time.Sleep(10 * time.Millisecond)
			if before {
				open()
			} else {
				time.AfterFunc(50*time.Millisecond, open)
			}
			fd := eventfd(t)
			b.check(driveClose(t, s.Close(fd), fd))
			eventually(t, "the store is empty", func() bool {
				s.Lock()
				defer s.Unlock()
				return s.Empty
			})
		})
	}
}
