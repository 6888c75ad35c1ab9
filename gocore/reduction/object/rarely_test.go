package object

import (
	"flag"
	"strconv"
	"testing"
)

// rarely lets rapid try one in so many of the cases of a test of long regions, and a fifth of these under the race detector, which makes such tests slow.
func rarely(t *testing.T, part int) {
	t.Helper()
	if raceDetector {
		part *= 5
	}
	checks := flag.Lookup("rapid.checks").Value
	was := checks.String()
	n, err := strconv.Atoi(was)
	if err == nil {
		err = checks.Set(strconv.Itoa((n + part - 1) / part))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Set(was) })
}
