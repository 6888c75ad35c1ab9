package engine

import "slices"

// fifo is a queue that reuses its memory: at most twice the largest number of items that were queued at once.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) push(x T) { q.items = append(q.items, x) }

func (q *fifo[T]) len() int { return len(q.items) - q.head }

// at is the i-th from the head.
func (q *fifo[T]) at(i int) T { return q.items[q.head+i] }

func (q *fifo[T]) pop() (T, bool) {
	var zero T
	if q.head == len(q.items) {
		return zero, false
	}
	x := q.items[q.head]
	q.items[q.head] = zero
	q.head++
	if q.head*2 >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return x, true
}

// without removes the items for which f returns true; the others keep their order.
func (q *fifo[T]) without(f func(T) bool) {
	q.items = slices.DeleteFunc(q.items[q.head:], f)
	q.head = 0
}

func (q *fifo[T]) peek() (T, bool) {
	var zero T
	if q.head == len(q.items) {
		return zero, false
	}
	return q.items[q.head], true
}
