package regions

import (
	"fmt"
	"sync"

	"go.uber.org/atomic"

	"velocpy/gocore/base/safego"
)

// together runs do in several goroutines, and returns when all have ended.
func together(goroutines int, do func(g int)) {
	if goroutines == 1 {
		do(0)
		return
	}
	var ended sync.WaitGroup
	ended.Add(goroutines)
	for g := range goroutines {
		safego.Go("regions", func() {
			defer ended.Done()
			do(g)
		})
	}
	ended.Wait()
}

// EachGroup runs work for groups 0 to n-1, each once, in several goroutines, until one fails. It returns the first error. work is told which of the goroutines
// runs it, from 0 on. A panic in a goroutine other than the caller's is an error here.
func EachGroup(goroutines, n int, work func(goroutine, group int) error) error {
	var next atomic.Int64
	var failed atomic.Error
	together(max(1, min(goroutines, n)), func(goroutine int) {
		err := errUnfinished
		defer func() {
			if err != nil {
				failed.CompareAndSwap(nil, err)
			}
		}()
		for {
			g := int(next.Inc() - 1)
			if g >= n || failed.Load() != nil {
				err = nil
				return
			}
			if wrong := work(goroutine, g); wrong != nil {
				err = wrong
				return
			}
		}
	})
	return failed.Load()
}

// errUnfinished is the error of work whose goroutine panicked.
var errUnfinished = fmt.Errorf("regions: %w", safego.ErrPoisoned)
