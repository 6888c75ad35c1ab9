// Package monitor keeps the monitor thread of Go's runtime (sysmon) from deep sleep while an application calls the core.
//
// That thread sleeps while no processor slot of the runtime is in use, which is the case between the calls of an
// application. A call that finds it asleep pays twice. It wakes the thread, which takes some 20 µs of the call. Then the
// thread looks at the slot that the call has got. It counts the time since the slot was last given to a goroutine,
// including all time outside of Go. That is usually more than the 10 ms after which a goroutine is preempted. A goroutine
// that was entered from C is bound to its thread, so that a preemption costs two hand-overs between threads: 50 to 110 µs.
//
// While calls arrive, one goroutine therefore occupies a slot of its own in a system call that sleeps. The monitor thread
// then looks at the slots once in 10 ms by itself, and a call does not wake it. It finds a call of 40 µs at work in one of
// 250 cases.
package monitor

import (
	"runtime"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/safego"
)

// nap is how long the goroutine sleeps at once. The monitor thread looks every 10 ms. It takes a slot away when the same
// goroutine has had it at two looks without a turn of the scheduler in between.
const nap = 6 * time.Millisecond

// patience is how many naps without a call end the goroutine: a second.
const patience = int(time.Second / nap)

var (
	reserved atomic.Bool
	awake    atomic.Bool
	calls    atomic.Uint64
)

// Reserve adds the slot that the goroutine occupies to those of the runtime, so that all others keep theirs. From then on
// the runtime does not follow a limit of the cgroup that changes. It is called once, when the core is initialised.
func Reserve() {
	if !reserved.Swap(true) {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// Slots is the number of processor slots for work: without the one reserved.
func Slots() int {
	n := runtime.GOMAXPROCS(0)
	if reserved.Load() {
		n--
	}
	return n
}

// Goroutines is the number that this package runs now.
func Goroutines() int {
	if awake.Load() {
		return 1
	}
	return 0
}

// Called tells that a call of the application has entered the core. Without a slot reserved it does nothing.
func Called() {
	calls.Inc()
	if reserved.Load() && !awake.Load() && awake.CompareAndSwap(false, true) {
		safego.Go("monitor", stay)
	}
}

// stay occupies a slot until no call has come for some time.
func stay() {
	defer awake.Store(false)
	for w := (watch{seen: calls.Load()}); !w.over(calls.Load()); {
		rest := unix.NsecToTimespec(int64(nap))
		_ = unix.Nanosleep(&rest, nil) // a signal ends the nap early, which does no harm
		runtime.Gosched()              // the turn of the scheduler that keeps the slot
	}
}

// watch counts the naps since the last call.
type watch struct {
	seen  uint64
	quiet int
}

// over tells whether there have been enough, at a look that finds so many calls in all.
func (w *watch) over(calls uint64) bool {
	w.quiet++
	if calls != w.seen {
		w.seen, w.quiet = calls, 0
	}
	return w.quiet > patience
}
