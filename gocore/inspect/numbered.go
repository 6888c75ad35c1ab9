package inspect

import (
	"fmt"
	"sync"
)

// numbered maps numbers to views or backups that callers have opened. A caller chooses the number before it asks to open one. If the caller is
// interrupted before it gets the answer, it can still close it. The zero value is ready to use, and safe for concurrent use.
type numbered[T any] struct {
	mu  sync.Mutex
	all map[uint64]T
}

// put stores v under an unused number.
func (n *numbered[T]) put(number uint64, v T) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, ok := n.all[number]; ok || number == 0 {
		return fmt.Errorf("%w: a view needs a number of its own, and %d is not", ErrRequest, number)
	}
	if n.all == nil {
		n.all = map[uint64]T{}
	}
	n.all[number] = v
	return nil
}

// get returns the value with a number; false if there is none.
func (n *numbered[T]) get(number uint64) (T, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.all[number]
	return v, ok
}

// take removes and returns the value with a number. Of several callers one gets it.
func (n *numbered[T]) take(number uint64) (T, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.all[number]
	delete(n.all, number)
	return v, ok
}
