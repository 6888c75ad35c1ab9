// Package fanout shares numbered work among goroutines.
package fanout

import (
	"errors"
	"iter"
	"sync"

	"go.uber.org/atomic"

	"velocpy/gocore/base/safego"
)

// Do shares the numbers below count among at most so many goroutines, whose name is given, and returns the errors of all when they have ended. Each goroutine calls the
// function once, with the numbers that it gets, in ascending order. After an error in one of them, the others get no more. A goroutine that panics fails with
// safego.ErrPoisoned.
func Do(name string, most, count int, f func(mine iter.Seq[int]) error) error {
	errs := make([]error, min(most, count))
	var failed atomic.Bool
	var next atomic.Int64
	mine := func(yield func(int) bool) {
		for !failed.Load() {
			if i := int(next.Inc() - 1); i >= count || !yield(i) {
				return
			}
		}
	}
	var busy sync.WaitGroup
	for i := range errs {
		busy.Add(1)
		errs[i] = safego.ErrPoisoned
		safego.Go(name, func() {
			defer busy.Done()
			if errs[i] = f(mine); errs[i] != nil {
				failed.Store(true)
			}
		})
	}
	busy.Wait()
	return errors.Join(errs...)
}
