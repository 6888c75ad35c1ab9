package host

import (
	"math"
	"testing"
	"time"
)

// Captures on a device teach how often and how much is captured.
func TestRhythm(t *testing.T) {
	var r rhythm
	for i := range int64(40) {
		r.captured(i*30e6, i*30e6+10e6, 1000)
	}
	if r.count != 40 || math.Abs(r.interval-20e6) > 1 || r.bytes != 1000 {
		t.Errorf("%+v", r)
	}
}

// Rates that were measured take the place of those assumed.
func TestPinRates(t *testing.T) {
	var r pinRates
	if got := r.of(4, 40e9); got.Touch != 4*assumedTouch || got.Register != assumedRegister || got.ShareDMA != assumedShareDMA || got.Pinned != 40e9 {
		t.Errorf("assumed: %+v", got)
	}
	r.prefaulted(4e9, time.Second, true)
	if got := r.of(4, 40e9); got.Touch != 4e9/assumedShareDMA {
		t.Errorf("touched beside transfers alone: %+v", got)
	}
	for range 50 {
		r.prefaulted(1e9, time.Second, false)
		r.prefaulted(5e8, time.Second, true)
		r.registered(3e9, time.Second)
	}
	got := r.of(4, 40e9)
	if math.Abs(got.Touch/1e9-1) > 1e-6 || math.Abs(got.ShareDMA/0.5-1) > 1e-3 || math.Abs(got.Register/3e9-1) > 1e-6 || got.RegisterFresh > got.Touch {
		t.Errorf("measured: %+v", got)
	}
}
