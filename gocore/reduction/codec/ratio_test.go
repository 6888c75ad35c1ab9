package codec

import (
	"bytes"
	"testing"
)

// least are the ratios that the codec is meant for, with some margin below those it has.
var least = map[string]float64{
	"weights bf16":                      1.40,
	"weights fp16":                      1.10,
	"weights fp32":                      1.16,
	"weights fp64":                      1.12,
	"wavefield early":                   15,
	"wavefield middle":                  2.5,
	"wavefield late":                    1.5,
	"wavefield late, smooth":            1.7,
	"wavefield late, smooth, reference": 2.2,
	"wavefield late, reference":         1.7,
	"step 1e-6 bf16":                    27,
	"step 1e-5 bf16":                    7,
	"step 1e-4 bf16":                    2.4,
	"step 1e-5 fp32":                    1.7,
	"random":                            0.999,
}

func TestRatios(t *testing.T) {
	if raceDetector {
		t.Skip("the simulations take long, and one goroutine cannot race")
	}
	for _, s := range samples() {
		container := encode(t, s.plain, s.reference, Options{Kind: s.kind, Modes: AllModes})
		back := make([]byte, len(s.plain))
		if err := Decode(back, container, s.reference, 1); err != nil || !bytes.Equal(back, s.plain) {
			t.Fatalf("%s: %v", s.name, err)
		}
		ratio := float64(len(s.plain)) / float64(len(container))
		if ratio < least[s.name] {
			t.Errorf("%s: ratio %.3f, want %.3f", s.name, ratio, least[s.name])
		}
		e, err := NewEncoder(s.kind, AllModes)
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.Sample(s.plain, s.reference, 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-34s %7.3f  chunks by mode %v", s.name, ratio, p.Wins)
	}
}
