package monitor

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// ends waits until the goroutine of the package has ended.
func ends(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(time.Minute); Goroutines() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the goroutine stays a minute behind the last call")
		}
	}
}

func TestNothingRunsUnlessASlotIsReserved(t *testing.T) {
	reserved.Store(false)
	Called()
	if Goroutines() != 0 {
		t.Error("a goroutine occupies a slot that others need")
	}
}

func TestTheSlotReservedIsOneMore(t *testing.T) {
	slots := Slots()
	Reserve()
	Reserve()
	if Slots() != slots || runtime.GOMAXPROCS(0) != slots+1 {
		t.Errorf("%d slots for work of %d, there were %d", Slots(), runtime.GOMAXPROCS(0), slots)
	}
}

func TestOneGoroutineStaysWhileCallsArriveAndEndsBehindThem(t *testing.T) {
	Reserve()
	before := runtime.NumGoroutine()
	for round := range 2 { // also a second time, when calls come again
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				for range 100 {
					Called()
				}
			})
		}
		callers.Wait()
		if Goroutines() != 1 {
			t.Fatalf("round %d: %d goroutines are counted", round, Goroutines())
		}
		for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+1; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("round %d: %d goroutines more than before", round, runtime.NumGoroutine()-before)
			}
		}
		ends(t)
	}
}

func TestOnlyNapsWithoutACallEndIt(t *testing.T) {
	w := watch{}
	for calls := range uint64(5) {
		for nap := range patience {
			if w.over(calls) {
				t.Fatalf("over %d naps behind call %d, of %d that it has to wait", nap, calls, patience)
			}
		}
	}
	if w.over(4) || !w.over(4) {
		t.Errorf("it does not end at the nap behind the %dth", patience)
	}
}
