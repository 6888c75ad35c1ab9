package codec

import (
	"fmt"
	"sync"

	"velocpy/gocore/base/safego"
)

// run is a range of neighbouring chunks, for one goroutine.
type run struct{ from, to int }

// divide divides chunks into at most so many runs, of nearly equal length. No run is empty.
func divide(chunks, goroutines int) []run {
	n := max(1, min(goroutines, chunks))
	runs := make([]run, 0, n)
	for i := range n {
		if r := (run{chunks * i / n, chunks * (i + 1) / n}); r.from < r.to {
			runs = append(runs, r)
		}
	}
	return runs
}

// each calls do for every run, each in its own goroutine if there are several. It returns the error of the first run that has one.
func each(runs []run, do func(i int, r run) error) error {
	if len(runs) == 1 {
		return do(0, runs[0])
	}
	errs := make([]error, len(runs))
	var done sync.WaitGroup
	for i, r := range runs {
		done.Add(1)
		safego.Go("codec", func() {
			defer done.Done()
			errs[i] = errUnfinished
			errs[i] = do(i, r)
		})
	}
	done.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// errUnfinished stays the error of a run whose goroutine panicked.
var errUnfinished = fmt.Errorf("codec: %w", safego.ErrPoisoned)
