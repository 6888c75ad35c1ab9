package durable

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

var errDead = errors.New("the process is dead")

// mishap is a failure that is injected into a call.
type mishap struct {
	name  string
	ops   vfs.Op // kinds of the calls; 0: any
	err   error
	short int  // bytes of a failing write that are still written
	once  bool // one call fails; otherwise all later ones fail too
	death bool // the process ends: no later call has an effect, and earlier effects stay
}

func mishaps() []mishap {
	all := []mishap{{name: "death", death: true}}
	for _, once := range []bool{true, false} {
		for _, m := range []mishap{
			{name: "EIO", err: unix.EIO}, {name: "ENOSPC", err: unix.ENOSPC}, {name: "EDQUOT", err: unix.EDQUOT}, {name: "EINTR", err: unix.EINTR},
			{name: "short write", err: unix.ENOSPC, short: 24, ops: vfs.OpWrite}, {name: "short write of a block", err: unix.EIO, short: 4096, ops: vfs.OpWrite},
		} {
			m.once = once
			if once {
				m.name += " once"
			}
			all = append(all, m)
		}
	}
	return all
}

// watch ends a hanging test run with the stacks of all goroutines: the count of finished cases has not changed for minutes. How long the whole test takes
// says nothing, as the machine may be loaded.
func watch(t *testing.T, finished *atomic.Int64) {
	const limit = 8 * time.Minute
	var timer *time.Timer
	var mu sync.Mutex
	before, over := int64(-1), false
	look := func() {
		mu.Lock()
		defer mu.Unlock()
		n := finished.Load()
		if over {
			return
		}
		if n == before {
			panic(t.Name() + " hangs")
		}
		before = n
		timer.Reset(limit)
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(limit, look)
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		over = true // look may have begun already
	})
}

// Any call may fail, in any way. Acknowledged checkpoints are there with their bytes, also after a loss of power at the end, and after one when another
// process has continued. Unacknowledged ones are complete or absent. If only one call failed, the store keeps working.
func TestFaults(t *testing.T) {
	var points atomic.Int64
	watch(t, &points)
	shared := sharing.Load()
	t.Run("of", func(t *testing.T) {
		for _, s := range scenarios {
			for _, m := range mishaps() {
				t.Run(s.name+"/"+m.name, func(t *testing.T) {
					t.Parallel()
					for seed := range uint64(2) {
						for n := int64(0); ; n++ {
							if thin(n, seed) {
								continue
							}
							happened, err := suffer(s, m, seed, n)
							if err != nil {
								t.Fatalf("seed %d, call %d: %v", seed, n, err)
							}
							if !happened {
								break
							}
							points.Add(1)
						}
					}
				})
			}
		}
	})
	t.Logf("%d points, %d checkpoints with the objects of others", points.Load(), sharing.Load()-shared)
	if want := int64(20_000); someAlone() {
		return
	} else if !tenth() && points.Load() < want || points.Load() < want/(parts()+parts()/5) {
		t.Errorf("only %d points", points.Load())
	}
	if n := sharing.Load() - shared; n < points.Load()/20 {
		t.Errorf("only %d checkpoints had objects of others", n)
	}
}

// someAlone tells whether only some subtests were selected: their combined counts mean nothing then.
func someAlone() bool { return strings.Contains(flag.Lookup("test.run").Value.String(), "/") }

// tenth tells whether only a part of the cases runs, as there is no time for all.
func tenth() bool { return underRace || testing.Short() || os.Getenv("VELOCPY_TURN") != "" }

// turn selects the part. VELOCPY_TURN counts the commits, so that each commit is tested with another part; runs with and without the race detector differ.
func turn() int64 {
	n, err := strconv.ParseInt(os.Getenv("VELOCPY_TURN"), 10, 64)
	if err == nil && !underRace {
		n += 5
	}
	return n
}

// thin drops all but one in so many cases where there is no time.
func thin(n int64, seed uint64) bool { return tenth() && (n+int64(seed)*5+turn())%parts() != 0 }

// parts is into how many parts the cases are divided. Under the race detector they are more: it finds what goroutines do to each other, in whichever case.
func parts() int64 {
	if underRace {
		return 30
	}
	if os.Getenv("VELOCPY_TURN") != "" {
		return 20
	}
	return 10
}

// suffer plays a scenario in which the n-th call fails; false: the scenario has fewer calls.
func suffer(s scenario, m mishap, seed uint64, n int64) (happened bool, err error) {
	rule := &vfs.Rule{Ops: m.ops, Skip: n, Err: m.err, Short: m.short > 0, ShortBytes: m.short}
	if m.once {
		rule.Times = 1
	}
	var calls atomic.Int64
	var p *player
	p = newPlayer(seed, func(disk *vfs.Mem) vfs.FS {
		if !m.death {
			return vfs.NewFaulty(disk, rule, p.trouble)
		}
		return &stepped{vfs.NewFaulty(disk, p.trouble), func(s step) error {
			at := calls.Add(1) - 1
			if at == n && s.write != nil {
				s.write(s.bytes / 2 / 4096 * 4096)
			}
			if at >= n {
				return errDead
			}
			return nil
		}}
	})
	s.play(p, m.once)
	happened = rule.Fired() > 0 || calls.Load() > n
	p.close()
	if p.wrong != nil {
		return happened, p.wrong
	}
	return happened, p.aftermath(uint64(n))
}

// aftermath verifies the directory if the power fails now, and if another process continues with the written state and the power fails then.
func (p *player) aftermath(seed uint64) error {
	p.mu.Lock()
	allowed := p.allowed()
	p.mu.Unlock()
	r := rand.New(rand.NewPCG(seed, 3))
	if _, err := recovered(p.options(p.mem.Crash(r, []float64{0, 0.5, 1}[seed%3])), allowed); err != nil {
		return fmt.Errorf("after a loss of power: %w", err)
	}
	p.under = func(m *vfs.Mem) vfs.FS { return m }
	if !p.open() || p.wrong != nil {
		_, err := Open(p.options(p.mem))
		return fmt.Errorf("after a new start: %w", errors.Join(p.wrong, err))
	}
	if _, err := one(p.d.contents, p.d.Space().Read, p.allowed()); err != nil {
		return fmt.Errorf("after a new start: %w", err)
	}
	if _, err := recovered(p.options(p.mem.Crash(r, 0)), []reference{p.sure}); err != nil {
		return fmt.Errorf("when the power goes after a new start: %w", err)
	}
	if !p.commit(p.put("a", p.key(0), 5000), p.drop("a", p.key(1))) {
		return errors.New("after a new start nothing can be written")
	}
	if _, err := recovered(p.options(p.mem.Crash(r, 0)), []reference{p.sure}); err != nil {
		return fmt.Errorf("when somebody has gone on and the power goes: %w", err)
	}
	if err := p.d.Close(); err != nil {
		return err
	}
	if n := p.mem.OpenFiles(); n != 0 {
		return fmt.Errorf("%d files are open", n)
	}
	return p.wrong
}
