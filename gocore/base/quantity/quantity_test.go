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
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 3 << 30: "3.0 GiB", 5 << 40: "5.0 TiB", 1 << 60: "1.0 EiB", math.MaxInt64: "8.0 EiB", -1: "-1 B", -1 << 40: "-1099511627776 B",
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

// TestSizesAreRightToOneDecimal: the text is the number, up to half of the last digit.
func TestSizesAreRightToOneDecimal(t *testing.T) {
	units := map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "PiB": 1 << 50}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<52).Draw(t, "n")
		var v float64
		var unit string
		text := Sized(n)
		if _, err := fmt.Sscanf(text, "%f %s", &v, &unit); err != nil || units[unit] == 0 {
			t.Fatalf("%d is written as %q", n, text)
		}
		if math.Abs(v*units[unit]-float64(n)) > 0.0501*units[unit] || v >= 1024 || strings.HasPrefix(text, "0.") {
			t.Fatalf("%d is written as %q", n, text)
		}
	})
}

func TestRates(t *testing.T) {
	for rate, want := range map[float64]string{
		0: "0 kB/s", 512: "0.512 kB/s", 999.6e3: "1 MB/s", 2 << 30: "2.15 GB/s", 55.4e9: "55.4 GB/s", 999.4e9: "999 GB/s", 3.35e12: "3.35 TB/s",
	} {
		if got := Rate(rate); got != want {
			t.Errorf("%g is written as %s, want %s", rate, got, want)
		}
	}
}
