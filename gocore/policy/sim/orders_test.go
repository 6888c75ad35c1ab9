package sim

import "math/rand/v2"

// Orders of restores over n checkpoints.

// Sequential is the order of writing.
func Sequential(n int) []int64 {
	o := make([]int64, n)
	for i := range o {
		o[i] = int64(i)
	}
	return o
}

// Reverse is the adjoint's order.
func Reverse(n int) []int64 {
	o := make([]int64, n)
	for i := range o {
		o[i] = int64(n - 1 - i)
	}
	return o
}

// Irregular is a random order that is the same for the same seed.
func Irregular(n int, seed uint64) []int64 {
	o := Sequential(n)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(n, func(i, j int) { o[i], o[j] = o[j], o[i] })
	return o
}
