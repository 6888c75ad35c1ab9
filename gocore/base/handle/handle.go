// Package handle numbers values for a C boundary: an unknown or outdated number is an error, never a wild pointer.
package handle

import "sync"

// Table maps handles to values of one kind. The zero value is ready to use, and safe for concurrent use.
type Table[T any] struct {
	mu    sync.Mutex
	rows  []row[T]
	empty []uint32
}

type row[T any] struct {
	value      T
	generation uint32 // odd while the row is in use
}

// Put returns a new handle for v. Handles are never zero, and a row's earlier handles stay invalid (until 2^31 reuses of the row).
func (t *Table[T]) Put(v T) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var i uint32
	if n := len(t.empty); n > 0 {
		i = t.empty[n-1]
		t.empty = t.empty[:n-1]
	} else {
		i = uint32(len(t.rows))
		t.rows = append(t.rows, row[T]{})
	}
	r := &t.rows[i]
	r.generation++
	r.value = v
	return uint64(r.generation)<<32 | uint64(i)
}

// Get returns the value of a handle; false when there is none.
func (t *Table[T]) Get(h uint64) (T, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.row(h); r != nil {
		return r.value, true
	}
	var none T
	return none, false
}

// Take returns the value of a handle and removes it: of several callers one gets it.
func (t *Table[T]) Take(h uint64) (T, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var none T
	r := t.row(h)
	if r == nil {
		return none, false
	}
	v := r.value
	r.value = none
	r.generation++
	t.empty = append(t.empty, uint32(h))
	return v, true
}

// Len is the number of handles in use.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.rows) - len(t.empty)
}

func (t *Table[T]) row(h uint64) *row[T] {
	i, generation := uint32(h), uint32(h>>32)
	if uint64(i) >= uint64(len(t.rows)) || generation&1 == 0 || t.rows[i].generation != generation {
		return nil
	}
	return &t.rows[i]
}
