package store

import (
	"runtime"
	"testing"
)

// With one processor, goroutines run in other orders: a load ends before the caller looks, and captures touch memory before it is prefaulted.
func TestWithOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, test := range map[string]func(*testing.T){
		"duplicates": TestDuplicatesAreStoredOnce, "random bytes": TestRandomBytesStayPlain, "not reduced": TestWhatIsNotReduced,
		"does not pay": TestWhatDoesNotPayAfterAll, "reference": TestADamagedReference, "resize": TestResizeHost,
	} {
		t.Run(name, test)
	}
}
