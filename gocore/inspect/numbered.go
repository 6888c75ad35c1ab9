package inspect

import (
	"fmt"
	"sync"
)

// numbered is what callers have opened. A caller chooses the number before it asks: if it is interrupted before it gets the answer, it can close what has been
// opened all the same. The zero value is ready to use, and safe for concurrent use.
type numbered[T any] struct {
	mu  sync.Mutex
	all map[uint64]T
}

// put keeps v under a number that nothing has.
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

// get returns what has a number; false if nothing has.
func (n *numbered[T]) get(number uint64) (T, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.all[number]
	return v, ok
}

// take returns what has a number, and forgets it: of several callers one gets it.
func (n *numbered[T]) take(number uint64) (T, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.all[number]
	delete(n.all, number)
	return v, ok
}
