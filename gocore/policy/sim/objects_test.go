package sim

import (
	"testing"

	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/evict"
)

// halved keeps checkpoints raw in the fastest tier, and in at most so many bytes, which turn out to be half of the raw ones, in the tiers below.
func halved(side engine.Side) func(size int64) *engine.Shape {
	return func(size int64) *engine.Shape {
		s := &engine.Shape{}
		for t := 1; t < engine.MaxTiers; t++ {
			s.Forms[t], s.Sizes[t], s.Stages[t-1] = engine.Encoded, size, side
		}
		return s
	}
}

// Checkpoints that are raw on the device and half as large below take half of the room on the host, and half of the way to the disk. If the device encodes
// them, half of the bytes cross the link to the host.
func TestCheckpointsAreEncodedBelowTheDevice(t *testing.T) {
	const size = 128 << 20
	slow := deviceMachine // whose link to the host is slow enough to count
	slow.media = []Medium{{WriteRate: 3e9, ReadRate: 3e9, Workers: 1, Latency: 20e3}, deviceMachine.media[1]}
	run := func(shape func(int64) *engine.Shape) (Result, *Machine) {
		m := slow.build(evict.Score, engine.Lazy)
		m.Encode(func(x *engine.Transfer) int64 { return x.Obj.Bytes(0) / 2 })
		s := Shot{Sizes: uniform(shotLength, size), Compute: 10e6, Order: Reverse(shotLength), Hints: AllHints, Last: true, Shape: shape}
		r, err := s.Run(m)
		if err != nil {
			t.Fatal(err)
		}
		return r, m
	}
	raw, _ := run(nil)
	above, ofAbove := run(halved(engine.UpperSide))
	below, ofBelow := run(halved(engine.LowerSide))
	// 384 checkpoints have 48 GiB, and 24 GiB when they are encoded: then the host, which has 29.8 GiB, holds all of them.
	if least := shortfall(size); raw.Written < least || above.Written > 0 || below.Written > 0 {
		t.Errorf("written: %d raw, at least %d are due; %d and %d encoded", raw.Written, least, above.Written, below.Written)
	}
	for _, m := range []*Machine{ofAbove, ofBelow} {
		if most := m.Engine.Stats.Tiers[1].HighWater; most > shotLength*size/2 {
			t.Errorf("%d bytes were in use on the host, of %d that are encoded", most, shotLength*size/2)
		}
	}
	blocked := func(r Result) int64 { return r.CaptureBlocked + r.RestoreBlocked }
	if blocked(above) > blocked(below)/2 || blocked(below) > blocked(raw) {
		t.Errorf("blocked for %d ns if the device encodes, for %d if the host does, and for %d raw", blocked(above), blocked(below), blocked(raw))
	}
	if ofAbove.sent[0]*2 != ofBelow.sent[0] {
		t.Errorf("over the link below the device went %d bytes that it had encoded, and %d for the host to encode", ofAbove.sent[0], ofBelow.sent[0])
	}
}

// shortfall is how many raw bytes of a shot neither the device nor the host can hold.
func shortfall(size int64) int64 { return shotLength*size - 32*gb - 4*gb }
