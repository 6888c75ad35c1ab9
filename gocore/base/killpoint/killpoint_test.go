package killpoint

import (
	"errors"
	"testing"
)

func TestKillsAtTheNthPassing(t *testing.T) {
	real := kill
	deaths := 0
	kill = func() { deaths++ }
	defer func() { kill = real }()
	for _, place := range Places() {
		deaths = 0
		if err := Arm(string(place) + ":3"); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= 5; n++ {
			for _, other := range Places() {
				if other != place {
					Pass(other)
				}
			}
			before := deaths
			Pass(place)
			if died := deaths != before; died != (n == 3) {
				t.Errorf("%s: passing %d: died is %v", place, n, died)
			}
		}
		if err := Arm(""); err != nil {
			t.Fatal(err)
		}
		deaths = 0
		Pass(place)
		if deaths != 0 {
			t.Errorf("%s: died unarmed", place)
		}
	}
}

func TestRefusesWhatIsNoPlace(t *testing.T) {
	for _, text := range []string{"data written", "data written:", "data written:0", "data written:-1", "data written:x", "elsewhere:1", ":1", "data written:1:2"} {
		if err := Arm(text); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", text, err)
		}
		if armed.Load() != nil {
			t.Fatalf("%q has armed it", text)
		}
	}
}

func BenchmarkUnarmed(b *testing.B) {
	for b.Loop() {
		Pass(BatchSynced)
	}
}
