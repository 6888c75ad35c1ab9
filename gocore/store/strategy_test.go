package store

import (
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/policy/coldstart"
)

// registration is one call of the driver: its bytes, and at its time the bytes prefaulted and the transfers in progress.
type registration struct{ bytes, touched, moving int64 }

// pinWatch is a store whose prefaulting waits before each piece until the test allows it. It records all registrations.
type pinWatch struct {
	*board
	s     *Store
	c     *client
	gate  func(stream uint64) (open func())
	piece chan int64 // the offset at which prefaulting waits
	leave chan struct{}
	calls registrations
	turn  string // the lock file by which processes take turns
}

type registrations struct {
	mu   sync.Mutex
	of   *Store
	made []registration
}

type watchedPins struct {
	cuda.Driver
	r *registrations
}

func (d watchedPins) Register(c cuda.Context, at unsafe.Pointer, n int64) error {
	d.r.mu.Lock()
	now := registration{bytes: n}
	if d.r.of != nil {
		p := pinProgress(d.r.of)
		now.touched, now.moving = p.Prefaulted, p.Transfers
	}
	d.r.made = append(d.r.made, now)
	d.r.mu.Unlock()
	return d.Driver.Register(c, at, n)
}

func (r *registrations) all() []registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]registration(nil), r.made...)
}

const watchedHost = 8 << 20

func watchPins(t *testing.T, change func(*config.Config)) *pinWatch {
	w := &pinWatch{piece: make(chan int64, 100), leave: make(chan struct{})}
	w.board, w.gate = gated(t, double.Config{})
	cfg := w.config(watchedHost, 0, 2<<20)
	cfg.PinPiece, cfg.Turns, cfg.Flush = 1<<20, filepath.Join(t.TempDir(), "turn"), "eager"
	cfg.Prefaulting = func(off int64) {
		w.piece <- off
		<-w.leave
	}
	cfg.OpenDevice = func(ordinal int, _ string) (device.Device, error) {
		return cuda.Open(watchedPins{w.driver, &w.calls}, ordinal, []byte("twins"))
	}
	change(&cfg)
	w.s, w.turn = open(t, cfg), cfg.Turns
	w.calls.mu.Lock()
	w.calls.of = w.s
	w.calls.mu.Unlock()
	t.Cleanup(sync.OnceFunc(func() { w.s.Host.Stop(); w.goOn() }))
	w.c = newClient(t, w.s, "h")
	return w
}

// goOn lets prefaulting run to the end.
func (w *pinWatch) goOn() {
	select {
	case <-w.leave:
	default:
		close(w.leave)
	}
}

// transfer begins a flush that stays in progress until open is called.
func (w *pinWatch) transfer() (open func()) {
	w.t.Helper()
	open = w.gate(w.stream)
	_, err := w.c.putOn(w.board, 1, w.alloc(200_000), 200_000)
	w.check(err)
	eventually(w.t, "a transfer is under way", func() bool { return pinProgress(w.s).Transfers > 0 })
	return open
}

// Each strategy does what its name says, whatever transfers run. The order of prefaulting, registering and transfers distinguishes them.
func TestStrategiesDiffer(t *testing.T) {
	t.Run("pipeline", func(t *testing.T) {
		w := watchPins(t, func(c *config.Config) { c.Pinning = "pipeline" })
		for range 3 { // each piece is registered before the next one is prefaulted
			off := <-w.piece
			eventually(t, "what was touched is registered", func() bool { return w.s.Host.Watermark().End() == off })
			w.leave <- struct{}{}
		}
		w.transfer()
		w.goOn()
		eventually(t, "everything is registered", func() bool { return w.s.Host.Watermark().End() == watchedHost })
		for _, call := range w.calls.all() {
			if call.bytes > 1<<20/4 {
				t.Errorf("%d bytes are registered in one call", call.bytes)
			}
		}
	})
	t.Run("concurrent", func(t *testing.T) {
		w := watchPins(t, func(c *config.Config) { c.Pinning = "concurrent" })
		w.transfer()
		w.goOn() // while the transfer is in progress
		eventually(t, "everything is registered", func() bool { return w.s.Host.Watermark().End() == watchedHost })
		calls := w.calls.all()
		if len(calls) != 1 || calls[0] != (registration{watchedHost, watchedHost, 1}) {
			t.Errorf("registered (bytes, touched, transfers under way): %v", calls)
		}
	})
	t.Run("sequential", func(t *testing.T) {
		w := watchPins(t, func(c *config.Config) { c.Pinning = "sequential" })
		w.leave <- struct{}{}
		<-w.piece
		second := <-w.piece
		end := w.transfer()
		w.goOn()
		eventually(t, "touching pauses", func() bool { return pinProgress(w.s).Paused > 0 })
		if touched := pinProgress(w.s).Prefaulted; touched != second || len(w.calls.all()) > 0 {
			t.Errorf("%d bytes are touched, %d had been when the transfer began; registered: %v", touched, second, w.calls.all())
		}
		end()
		eventually(t, "everything is registered", func() bool { return w.s.Host.Watermark().End() == watchedHost })
		calls := w.calls.all()
		if len(calls) != 1 || calls[0].bytes != watchedHost || calls[0].touched != watchedHost {
			t.Errorf("registered (bytes, touched, transfers under way): %v", calls)
		}
	})
	t.Run("direct", func(t *testing.T) {
		w := watchPins(t, func(c *config.Config) { c.Pinning = "direct" })
		if calls := w.calls.all(); len(calls) != 1 || calls[0].bytes != watchedHost || pinProgress(w.s).Prefaulted != 0 || len(w.piece) > 0 {
			t.Errorf("registered %v when the store is open, %d bytes touched", calls, pinProgress(w.s).Prefaulted)
		}
	})
}

// nodeOfSmallPages returns rates for a node on which many processes disturb each other when they register, scaled to a host tier of this size. For 32
// GB they would be 24 GB/s for prefaulting, 5 GB/s for registering, and so on.
func nodeOfSmallPages() coldstart.Rates {
	const scale = float64(watchedHost) / 32e9
	return coldstart.Rates{
		Touch: 24e9 * scale, Register: 5e9 * scale, RegisterFresh: 2.7e9 * scale, Pinned: 55e9 * scale, Pageable: 6e9 * scale, Fresh: 3e9 * scale,
		Share: 0.6, ShareDMA: 0.8, Call: 64e6 * scale,
	}
}

// Strategy "auto" begins with the known rates. It chooses again when captures have shown their interval and size, and the number of processes is
// known: another strategy, and back.
func TestAutoChoosesAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*coldstart.Rates)
		want   coldstart.Strategy
	}{
		"concurrent": {func(*coldstart.Rates) {}, coldstart.Concurrent},
		"sequential": {func(r *coldstart.Rates) { r.Share = 0.2 }, coldstart.Sequential},
		"direct":     {func(r *coldstart.Rates) { r.RegisterFresh *= 1e4 }, coldstart.Direct},
		"pipeline":   {func(r *coldstart.Rates) { r.Register *= 100 }, coldstart.Pipeline},
	} {
		t.Run(name, func(t *testing.T) {
			rates := nodeOfSmallPages()
			w := watchPins(t, func(cfg *config.Config) { cfg.PinRates = &rates })
			if pinProgress(w.s).Strategy != coldstart.Pipeline {
				t.Fatalf("begins with %v", pinProgress(w.s).Strategy)
			}
			w.leave <- struct{}{}
			<-w.piece
			<-w.piece
			var others []*vfs.Place
			for range 7 {
				other, err := vfs.LineUp(w.turn + "-members")
				w.check(err)
				others = append(others, other)
			}
			const interval, checkpoint = int64(50e6), int64(128e6) * watchedHost / 32e9 // ns, bytes
			w.s.Lock()
			c.change(&rates)
			w.s.Host.Captured(0, 0, checkpoint)
			w.s.Host.Captured(interval, interval, checkpoint)
			w.s.Unlock()
			w.leave <- struct{}{}
			third := <-w.piece
			if pinProgress(w.s).Strategy != coldstart.Pipeline {
				t.Errorf("%v after few captures", pinProgress(w.s).Strategy)
			}
			w.s.Lock()
			w.s.Host.Captured(2*interval, 2*interval, checkpoint)
			w.s.Unlock()
			w.leave <- struct{}{}
			if c.want == coldstart.Direct {
				eventually(t, "everything is registered", func() bool { return w.s.Host.Watermark().End() == watchedHost })
				if calls := w.calls.all(); calls[len(calls)-1].bytes < watchedHost/2 || pinProgress(w.s).Prefaulted > watchedHost/2 {
					t.Errorf("registered (bytes, touched, transfers under way): %v", calls)
				}
				return
			}
			fourth := <-w.piece
			if pinProgress(w.s).Strategy != c.want {
				t.Fatalf("goes on with %v", pinProgress(w.s).Strategy)
			}
			for _, other := range others {
				w.check(other.Leave())
			}
			if c.want != coldstart.Pipeline {
				w.leave <- struct{}{} // a piece by the other strategy
				<-w.piece             // and the choice without other processes
				eventually(t, "everything before is registered", func() bool { return w.s.Host.Watermark().End() >= third })
			}
			if pinProgress(w.s).Strategy != coldstart.Pipeline {
				t.Errorf("alone, it goes on with %v behind %d", pinProgress(w.s).Strategy, fourth)
			}
			w.goOn()
			eventually(t, "everything is registered", func() bool { return w.s.Host.Watermark().End() == watchedHost })
		})
	}
}

// Captures on a device determine the interval and size of captures.
func TestRhythm(t *testing.T) {
	w := watchPins(t, func(c *config.Config) { c.Pinning = "direct" })
	for k := range int64(5) {
		w.c.mustPutOn(w.board, k, random(100_000, uint64(k)))
	}
	if got := pinProgress(w.s); got.Captures != 5 || got.Bytes < 100_000 || got.Bytes > 110_000 || got.Interval <= 0 {
		t.Errorf("%+v", got)
	}
}
