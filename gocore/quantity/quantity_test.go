package quantity

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 3 << 30: "3.0 GiB", 5 << 40: "5.0 TiB", math.MaxInt64: "8388608.0 TiB",
	} {
		if got := Sized(n); got != want {
			t.Errorf("%d is written as %s, want %s", n, got, want)
		}
	}
	if got := Exact(1<<20 + 1); got != "1.0 MiB (1048577 bytes)" {
		t.Error(got)
	}
	if got := Exact(17); got != "17 B" {
		t.Error(got)
	}
}

// TestSizesAreRightToOneDecimal: what is written is the number, up to half of the last digit.
func TestSizesAreRightToOneDecimal(t *testing.T) {
	units := map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<52).Draw(t, "n")
		var v float64
		var unit string
		text := Sized(n)
		if _, err := fmt.Sscanf(text, "%f %s", &v, &unit); err != nil || units[unit] == 0 {
			t.Fatalf("%d is written as %q", n, text)
		}
		if math.Abs(v*units[unit]-float64(n)) > 0.0501*units[unit] || v >= 1024 && unit != "TiB" || strings.HasPrefix(text, "0.") {
			t.Fatalf("%d is written as %q", n, text)
		}
	})
}
