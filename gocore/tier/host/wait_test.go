package host

import (
	"testing"
	"time"
)

// eventually waits until something is so, and fails the test when it takes too long.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in 30 s not: %s", what)
		}
	}
}
