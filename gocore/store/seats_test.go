package store

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/cuda/double"
	"velocpy/gocore/status"
	"velocpy/gocore/vfs"
)

func TestSeatsBeside(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	files := seatsBeside("/somewhere/turn")
	if want := (all.Count() + seatThreads - 1) / seatThreads; len(files) != want {
		t.Errorf("%d seats for %d processors", len(files), all.Count())
	}
	for i, file := range files {
		if !strings.HasPrefix(file, "/somewhere/turn-cpu") || i > 0 && file == files[i-1] {
			t.Errorf("seats at %v", files)
		}
	}
}

// waiting is a store of which only the pinning is used.
func waiting() *Store {
	s := &Store{}
	s.pin.stop = make(chan struct{})
	return s
}

// Who comes takes as many turns as are free, up to a number, waits when none is, and is not kept from closing.
func TestTakeTurns(t *testing.T) {
	var files []string
	for i := range 3 {
		files = append(files, filepath.Join(t.TempDir(), fmt.Sprint(i)))
	}
	take := func(most, want int) []*vfs.Turn {
		t.Helper()
		turns, open := waiting().takeTurns(files, most)
		if !open || len(turns) != want {
			t.Fatalf("%d turns, open %v", len(turns), open)
		}
		return turns
	}
	first := take(2, 2)
	second := take(2, 1)
	closing := waiting()
	time.AfterFunc(5*time.Millisecond, closing.stopPinning)
	if turns, open := closing.takeTurns(files, 2); open || len(turns) != 0 {
		t.Errorf("%d turns of those that others have, open %v", len(turns), open)
	}
	time.AfterFunc(5*time.Millisecond, func() { endAll(second) })
	third := take(2, 1)
	endAll(first)
	endAll(third)
	endAll(take(3, 3))
	if turns, open := waiting().takeTurns([]string{filepath.Join(files[0], "below")}, 1); !open || len(turns) != 0 {
		t.Errorf("%d turns without a file, open %v", len(turns), open)
	}
}

// A flush waits until its place has been pinned, but not for a process that keeps the turn and stands still. Restores of the checkpoint do not wait
// with it.
func TestFlushWaitsForPinning(t *testing.T) {
	for name, comes := range map[string]bool{"it comes": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			b := newBoard(t, double.Config{})
			cfg := b.config(4<<20, 16<<20, 4<<20)
			cfg.PinRest = 2 * hang
			if !comes {
				cfg.PinRest = 20 * time.Millisecond
			}
			turn, err := vfs.TryTurn(cfg.Turns)
			b.check(err)
			c := newClient(t, open(t, cfg), "h")
			p := random(350_001, 1)
			c.mustPutOn(b, 1, p)
			var out Outcome
			op, code, err := c.s.Wait(c.h, 0, status.TierHost, c.fd)
			b.check(err)
			if comes {
				eventually(t, "the flush waits", c.s.pin.front.awaited)
				c.mustGetOn(b, 1, p)
				c.mustGet(1, p, RestoreArgs{}) // through host memory
				if stats, err := c.s.Stats(); err != nil || stats.Tiers["host"].Written > 0 {
					t.Errorf("a flush to what is not pinned, %v", err)
				}
				b.check(turn.End())
			}
			b.check(drive(t, op, code, c.fd, &out))
			if got := c.s.pin.front.reached() > 0; got != comes {
				t.Errorf("pinned meanwhile: %v", got)
			}
			c.mustGetOn(b, 1, p)
			if !comes {
				b.check(turn.End())
			}
		})
	}
}

// Stores are served in the order in which they asked.
func TestTurnsAreInOrder(t *testing.T) {
	files := []string{filepath.Join(t.TempDir(), "seat")}
	const stores = 5
	held, _ := waiting().takeTurns(files, 1)
	served := make(chan int, stores)
	var all sync.WaitGroup
	for i := range stores {
		all.Go(func() {
			turns, _ := waiting().takeTurns(files, 1)
			served <- i
			endAll(turns)
		})
		eventually(t, "the store stands in the queue", func() bool {
			place, err := vfs.LineUp(files[0] + "-queue")
			if err != nil {
				t.Fatal(err)
			}
			ahead, err := place.Ahead()
			if err != nil {
				t.Fatal(err)
			}
			return place.Leave() == nil && ahead == int64(i)+1
		})
	}
	endAll(held)
	all.Wait()
	for i := range stores {
		if got := <-served; got != i {
			t.Errorf("store %d is served as number %d", got, i)
		}
	}
}
