package fanout

import (
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Every number is given once, each goroutine gets its own in ascending order, and there are no more goroutines than asked for.
func TestEveryNumberIsGivenOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, count := rapid.IntRange(1, 9).Draw(t, "most"), rapid.IntRange(0, 50).Draw(t, "count")
		var mu sync.Mutex
		var all []int
		calls := 0
		err := Do("test", most, count, func(mine iter.Seq[int]) error {
			own := slices.Collect(mine)
			mu.Lock()
			defer mu.Unlock()
			calls++
			if !slices.IsSorted(own) {
				return errors.New("not in order")
			}
			all = append(all, own...)
			return nil
		})
		if slices.Sort(all); err != nil || len(all) != count || calls != min(most, count) {
			t.Fatalf("%d of %d numbers, by %d goroutines: %v", len(all), count, calls, err)
		}
		for i, n := range all {
			if i != n {
				t.Fatalf("%d is missing or was given twice", i)
			}
		}
	})
}

// After an error no number is given any more, and the errors of all goroutines are returned.
func TestAnErrorEndsTheWork(t *testing.T) {
	one, other := errors.New("one"), errors.New("other")
	var both sync.WaitGroup
	both.Add(2)
	given := make(chan int, 100)
	err := Do("test", 2, 100, func(mine iter.Seq[int]) error {
		for i := range mine {
			given <- i
			both.Done()
			both.Wait()
			if i == 0 {
				return one
			}
			return other
		}
		return nil
	})
	if !errors.Is(err, one) || !errors.Is(err, other) || len(given) != 2 {
		t.Fatalf("%d numbers: %v", len(given), err)
	}
}
