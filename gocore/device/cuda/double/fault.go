package double

import (
	"velocpy/gocore/device/cuda"
)

// failure makes calls fail: the first skip calls succeed, the next times calls fail.
type failure struct {
	code        cuda.Code
	skip, times int
}

// faults makes calls and devices fail as a test has asked for.
type faults struct {
	*state

	failures map[string][]*failure // by function
}

// Fail makes a function fail: the next skip calls succeed, the times calls after them return code. call is the name of the method. A code that is
// sticky for the real driver loses the context of the call.
func (fs *faults) Fail(call string, code cuda.Code, skip, times int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.failures[call] = append(fs.failures[call], &failure{code, skip, times})
}

// Lose makes a device lose its context when it is about to run its next copy or launch after the given number. That one, and all work queued behind
// it in any stream, never runs. 0 loses it at once.
func (fs *faults) Lose(device, after int) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	g := fs.gpus[device]
	if g.countdown = after; after == 0 {
		g.lose(cuda.IllegalAddress)
	}
}

func (g *gpu) lose(code cuda.Code) {
	if g.lost == 0 {
		g.lost = code
	}
}

// Occupy sets how many bytes of a device's memory other processes use.
func (fs *faults) Occupy(device int, bytes int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.gpus[device].occupied = bytes
}

// LimitPinned sets how much host memory can be pinned from now on; 0: unlimited, negative: none.
func (fs *faults) LimitPinned(bytes int64) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.cfg.Pinned = bytes
}

// failing is the error that a call returns before it does anything.
func (fs *faults) failing(call string, g *gpu) error {
	if g != nil && g.lost != 0 {
		return fail(call, g.lost)
	}
	for _, f := range fs.failures[call] {
		switch {
		case f.times == 0:
			continue
		case f.skip > 0:
			f.skip--
			continue
		}
		f.times--
		if g != nil && f.code.Sticky() {
			g.lose(f.code)
		}
		return fail(call, f.code)
	}
	return nil
}
