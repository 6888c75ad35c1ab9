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
				all = append(all, Written{node, bytes, s})
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
	for _, few := range []Written{{2, leastMeasured - 1, 100}, {2, bytes, 0}} {
		if after := Paces(nil).Learn(append(write(second, second), few)); len(after) != 2 {
			t.Fatalf("%+v says something of a node's pace: %v", few, after)
		}
	}
	// Two ranks of a node write at the same time.
	p = Paces(nil).Learn([]Written{{0, bytes / 2, second}, {0, bytes / 2, second}, {1, bytes, second}})
	if p[0] != p[1] {
		t.Fatalf("%v", p)
	}
	if slow := Paces(nil).Slow(); len(slow) > 0 {
		t.Fatalf("slow: %v", slow)
	}
}
