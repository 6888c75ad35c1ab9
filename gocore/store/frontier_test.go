package store

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// waits tells how long a wait for a place takes while f is treated by the others.
func waits(f *frontier, place int64, others func()) time.Duration {
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	all.Go(others)
	took := f.await(place)
	if took != time.Since(began) {
		panic("it tells another time than it took")
	}
	return took
}

func TestFrontier(t *testing.T) {
	const step = 100 * time.Millisecond
	moving := func(f *frontier, moves int, end func()) func() {
		return func() {
			for range moves {
				time.Sleep(step)
				f.advance(10)
			}
			time.Sleep(step)
			end()
		}
	}
	for name, tc := range map[string]struct {
		begun bool
		place int64
		moves int
		halts bool
		want  time.Duration
	}{
		"behind it":              {true, 5, 3, true, 0},
		"at it":                  {true, 10, 3, true, 0},
		"a move ahead":           {true, 11, 3, true, step},
		"two moves ahead":        {true, 30, 3, true, 2 * step},
		"it halts":               {true, 100, 3, true, 4 * step},
		"it stands still":        {true, 100, 3, false, 3*step + frontierRest},
		"it never moves":         {true, 100, 0, false, frontierRest},
		"as far as is waited":    {true, frontierReach + 10, 1, true, 2 * step},
		"further":                {true, frontierReach + 11, 3, true, 0},
		"nothing is being done":  {false, 100, 0, true, 0},
		"as far as it had moved": {false, 5, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f frontier
				f.advance(10)
				if tc.begun {
					f.set(frontierRest)
				}
				end := func() {}
				if tc.halts {
					end = f.halt
				}
				if got := waits(&f, tc.place, moving(&f, tc.moves, end)); got != tc.want {
					t.Errorf("waited %v, not %v", got, tc.want)
				}
			})
		})
	}
}

// Who comes when it has stood still for long does not wait at all, until it moves again.
func TestFrontierThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f frontier
		f.set(frontierRest)
		time.Sleep(2 * frontierRest)
		if got := waits(&f, 20, func() {}); got != 0 {
			t.Errorf("waited %v for what stands still", got)
		}
		f.advance(10)
		if got := waits(&f, 20, func() { time.Sleep(time.Millisecond); f.advance(10) }); got != time.Millisecond {
			t.Errorf("waited %v for what moves again", got)
		}
	})
}

// awaited tells whether somebody waits.
func (f *frontier) awaited() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waiting > 0
}
