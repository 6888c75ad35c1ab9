package regions

import (
	"fmt"
	"sync"

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

// errUnfinished is the error of work whose goroutine panicked.
var errUnfinished = fmt.Errorf("regions: %w", safego.ErrPoisoned)
