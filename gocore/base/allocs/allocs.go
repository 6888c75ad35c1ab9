// Package allocs tells, for tests, what a call allocates.
package allocs

import "runtime/metrics"

// tries is how often a call is made that seems to allocate too much.
const tries = 5

// Least makes a call, and again while it allocated more than most bytes, up to a few times. It returns the least that one of the calls allocated.
//
// The runtime counts for the whole process, and counts small objects when the room that was set aside for them is full. What one call shows may
// therefore be of other goroutines, or from before it. What a call allocates each time, all of them show.
func Least(most uint64, call func()) (bytes uint64) {
	for try := range tries {
		before := total()
		call()
		took := total() - before
		if try == 0 || took < bytes {
			bytes = took
		}
		if bytes <= most {
			break
		}
	}
	return bytes
}

func total() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
