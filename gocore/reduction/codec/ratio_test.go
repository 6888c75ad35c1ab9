package codec

import (
	"bytes"
	"testing"
)

func TestRatios(t *testing.T) {
	for _, s := range samples() {
		dst := make([]byte, Bound(len(s.plain)))
		n, err := Encode(dst, s.plain, s.reference, Options{Kind: s.kind, Modes: AllModes})
		if err != nil {
			t.Fatal(s.name, err)
		}
		back := make([]byte, len(s.plain))
		if err := Decode(back, dst[:n], s.reference, 1); err != nil || !bytes.Equal(back, s.plain) {
			t.Fatal(s.name, err)
		}
		e, _ := NewEncoder(s.kind, AllModes)
		p, _ := e.Sample(s.plain, s.reference, 1)
		alone := [ModeCount]float64{}
		for m := range alone {
			alone[m] = float64(int(1000*float64(p.Plain)/float64(p.Alone[m]))) / 1000
		}
		t.Logf("%-26s %.3f  alone %v wins %v", s.name, float64(len(s.plain))/float64(n), alone, p.Wins)
	}
}
