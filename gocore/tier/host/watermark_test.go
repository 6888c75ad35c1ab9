package host

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// waits returns how long a wait for an offset takes while others changes the watermark.
func waits(f *Watermark, place int64, others func()) time.Duration {
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	all.Go(others)
	took := f.Await(place)
	if took != time.Since(began) {
		panic("it tells another time than it took")
	}
	return took
}

func TestWatermark(t *testing.T) {
	const step = 100 * time.Millisecond
	moving := func(f *Watermark, moves int, end func()) func() {
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
		"it stands still":        {true, 100, 3, false, 3*step + watermarkRest},
		"it never moves":         {true, 100, 0, false, watermarkRest},
		"as far as is waited":    {true, WatermarkReach + 10, 1, true, 2 * step},
		"further":                {true, WatermarkReach + 11, 3, true, 0},
		"nothing is being done":  {false, 100, 0, true, 0},
		"as far as it had moved": {false, 5, 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var f Watermark
				f.advance(10)
				if tc.begun {
					f.start(watermarkRest)
				}
				end := func() {}
				if tc.halts {
					end = f.stop
				}
				if got := waits(&f, tc.place, moving(&f, tc.moves, end)); got != tc.want {
					t.Errorf("waited %v, not %v", got, tc.want)
				}
			})
		})
	}
}

// A transfer that comes when the watermark has stood still for long does not wait, until it moves again.
func TestWatermarkThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Watermark
		f.start(watermarkRest)
		time.Sleep(2 * watermarkRest)
		if got := waits(&f, 20, func() {}); got != 0 {
			t.Errorf("waited %v for what stands still", got)
		}
		f.advance(10)
		if got := waits(&f, 20, func() { time.Sleep(time.Millisecond); f.advance(10) }); got != time.Millisecond {
			t.Errorf("waited %v for what moves again", got)
		}
	})
}
