package store

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/atomic"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/operation"
	"velocpy/gocore/tier/host"
)

// Whatever the strategy, in the end the whole tier is pinned, or nothing with off. Copies across seams are exact meanwhile and afterwards.
func TestPinningStrategies(t *testing.T) {
	for _, strategy := range []string{"", "auto", "pipeline", "concurrent", "sequential", "direct", "off"} {
		t.Run(strategy, func(t *testing.T) {
			b := newBoard(t, double.Config{Delay: 20 * time.Microsecond})
			cfg := b.config(5<<20+8192, 64<<20, 1<<20)
			cfg.Pinning, cfg.PinPiece, cfg.Turns = strategy, 1<<20, filepath.Join(t.TempDir(), "turn")
			s := open(t, cfg)
			if strategy == "direct" && (s.Host.Watermark().End() != s.Host.Size() || b.driver.Calls("Register") != 1) {
				t.Errorf("%d bytes are pinned when the store is open, in %d pieces", s.Host.Watermark().End(), b.driver.Calls("Register"))
			}
			c := newClient(t, s, "h")
			work := func() {
				for k := range int64(30) {
					c.mustPutOn(b, k, random(350_001, uint64(k)))
				}
				for k := range int64(30) {
					c.mustGetOn(b, k, random(350_001, uint64(k)))
				}
				b.used = 0
			}
			work()
			want := s.Host.Size()
			if strategy == "off" {
				want = 0
			}
			eventually(t, "everything is pinned that is to be", func() bool {
				stats, err := s.Stats()
				return err == nil && stats.Tiers["host"].Pinned == want
			})
			work()
		})
	}
}

// When the driver refuses a later piece, there is one warning, and the rest stays pageable.
func TestPinningRefusedHalfWay(t *testing.T) {
	for n := range 4 {
		t.Run(fmt.Sprint(n), func(t *testing.T) { refuse(t, n) })
	}
}

func refuse(t *testing.T, n int) {
	b := newBoard(t, double.Config{})
	cfg := b.config(4<<20, 64<<20, 1<<20)
	cfg.PinPiece, cfg.Turns = 1<<20, filepath.Join(t.TempDir(), "turn")
	b.driver.Fail("Register", cuda.OutOfMemory, n, 1000)
	warnings("")
	s := open(t, cfg)
	c := newClient(t, s, "h")
	found := 0
	eventually(t, "the refusal is told", func() bool { found += warnings("stays pageable"); return found > 0 })
	for k := range int64(30) {
		c.mustPutOn(b, k, random(350_001, uint64(k)))
	}
	for k := range int64(30) {
		c.mustGetOn(b, k, random(350_001, uint64(k)))
	}
	if found += warnings("stays pageable"); found != 1 || s.Host.Watermark().End() != int64(n)<<17 { // the first pieces are an eighth as large
		t.Errorf("refused after %d: %d warnings, %d bytes pinned", n, found, s.Host.Watermark().End())
	}
}

// slowPins delays registrations, and counts how many run at once.
type slowPins struct {
	cuda.Driver
	now, most *atomic.Int64
}

func (d slowPins) Register(c cuda.Context, at unsafe.Pointer, n int64) error {
	if now := d.now.Inc(); now > d.most.Load() {
		d.most.Store(now)
	}
	defer d.now.Dec()
	time.Sleep(2 * time.Millisecond)
	return d.Driver.Register(c, at, n)
}

// Stores, like processes, take turns to register. Close does not wait for a turn.
func TestPinningTakesTurns(t *testing.T) {
	b := newBoard(t, double.Config{})
	var now, most atomic.Int64
	file := filepath.Join(t.TempDir(), "turn")
	var stores []*Store
	for range 3 {
		cfg := b.config(6<<20, 0, 1<<20)
		cfg.PinPiece, cfg.Turns = 1<<20, file
		cfg.OpenDevice = func(ordinal int, _ string) (device.Device, error) {
			return cuda.Open(slowPins{b.driver, &now, &most}, ordinal, []byte("twins"))
		}
		s, err := Open(cfg)
		b.check(err)
		stores = append(stores, s)
	}
	for _, s := range stores {
		eventually(t, "everything is pinned", func() bool { return s.Host.Watermark().End() == 6<<20 })
	}
	if most.Load() != 1 {
		t.Errorf("%d registered at once", most.Load())
	}
	turn, err := vfs.TryTurn(file) // another process's turn, which it keeps
	b.check(err)
	cfg := b.config(6<<20, 0, 1<<20)
	cfg.Turns = file
	waiting, err := Open(cfg)
	b.check(err)
	for _, s := range append(stores, waiting) {
		shut(t, s)
	}
	b.check(turn.End())
	if waiting.Host.Watermark().End() != 0 {
		t.Error("pinned out of turn")
	}
}

// pinProgress returns the progress of pinning a store's host tier.
func pinProgress(s *Store) host.Progress {
	s.Lock()
	defer s.Unlock()
	return s.Host.Progress()
}

// A flush waits until its destination is pinned, but not for a process that keeps the turn and is stalled. Restores of the checkpoint do not wait
// with the flush.
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
			var out operation.Outcome
			op, code, err := c.s.Wait(c.h, 0, status.TierHost, c.fd)
			b.check(err)
			if comes {
				eventually(t, "the flush waits", func() bool { return pinProgress(c.s).Waiting > 0 })
				c.mustGetOn(b, 1, p)
				c.mustGet(1, p, operation.RestoreArgs{}) // through host memory
				if stats, err := c.s.Stats(); err != nil || stats.Tiers["host"].Written > 0 {
					t.Errorf("a flush to what is not pinned, %v", err)
				}
				b.check(turn.End())
			}
			b.check(drive(t, op, code, c.fd, &out))
			if got := c.s.Host.Watermark().End() > 0; got != comes {
				t.Errorf("pinned meanwhile: %v", got)
			}
			c.mustGetOn(b, 1, p)
			if !comes {
				b.check(turn.End())
			}
		})
	}
}
