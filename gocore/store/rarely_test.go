package store

import (
	"flag"
	"strconv"
	"testing"
)

// rarely lets rapid try a fifth of the cases of a test under the race detector. It is for tests of one caller, whose cases differ in their bytes, and hardly
// in what its goroutines do beside each other. The run without the race detector tries all of them.
func rarely(t *testing.T) {
	t.Helper()
	if !raceDetector {
		return
	}
	checks := flag.Lookup("rapid.checks").Value
	was := checks.String()
	n, err := strconv.Atoi(was)
	if err == nil {
		err = checks.Set(strconv.Itoa((n + 4) / 5))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Set(was) })
}
