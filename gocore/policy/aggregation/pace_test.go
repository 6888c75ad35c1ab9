package aggregation

import (
	"maps"
	"testing"
)

func TestPacesAreLearnt(t *testing.T) {
	const bytes, second = 1 << 30, 1.0
	write := func(seconds ...float64) (all []Written) {
		for node, s := range seconds {
			if s > 0 {
				all = append(all, Written{Node: node, Bytes: bytes, Seconds: s})
			}
		}
		return all
	}
	p := Paces(nil).Learn(write(second, second, 5*second))
	if slow := p.Slow(); !maps.Equal(slow, map[int]float64{2: 5}) {
		t.Fatalf("slow: %v", slow)
	}
	if slow := p.Learn(write(second, second, second)).Slow(); !maps.Equal(slow, map[int]float64{2: 3}) {
		t.Fatalf("as fast as the others since, it counts as half of both: %v", slow)
	}
	if slow := p.Learn(write(second, second, 5*second)).Slow(); !maps.Equal(slow, map[int]float64{2: 5}) {
		t.Fatalf("slow: %v", slow)
	}
	plans := 0
	for ; len(p.Slow()) > 0; plans++ {
		p = p.Learn(write(second, second))
	}
	if plans != 3 {
		t.Fatalf("a node that was five times as slow is tried again after %d plans", plans)
	}
	for _, few := range []Written{{Node: 2, Bytes: leastMeasured - 1, Seconds: 100}, {Node: 2, Bytes: bytes}} {
		if after := Paces(nil).Learn(append(write(second, second), few)); len(after) != 2 {
			t.Fatalf("%+v says something of a node's pace: %v", few, after)
		}
	}
	// Two ranks of a node write at the same time.
	p = Paces(nil).Learn([]Written{{Node: 0, Bytes: bytes / 2, Seconds: second}, {Node: 0, Bytes: bytes / 2, Seconds: second}, {Node: 1, Bytes: bytes, Seconds: second}})
	if p[0] != p[1] {
		t.Fatalf("%v", p)
	}
	// A sync takes as long for few bytes as for many. One that takes longer than the others counts.
	few := Written{Node: 0, Bytes: 8 << 20, Seconds: 0.01, Sync: 0.1}
	many := Written{Node: 1, Bytes: 256 << 20, Seconds: 0.3, Sync: 0.1}
	if slow := Paces(nil).Learn([]Written{few, many, {Node: 2, Sync: 0.001}}).Slow(); len(slow) > 0 {
		t.Fatalf("slow: %v", slow)
	}
	few.Sync = 0.5
	if slow := Paces(nil).Learn([]Written{few, many}).Slow(); slow[0] < 10 {
		t.Fatalf("slow: %v", slow)
	}
	if slow := Paces(nil).Slow(); len(slow) > 0 {
		t.Fatalf("slow: %v", slow)
	}
}
