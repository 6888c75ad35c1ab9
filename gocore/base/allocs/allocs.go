// Package allocs measures, for tests, how much a call allocates.
package allocs

import "runtime/metrics"

// tries is how often a call is repeated that seems to allocate too much.
const tries = 5

// Least makes a call, and repeats it a few times while it allocates more than most bytes. It returns the least that one of the calls allocated.
//
// The runtime counts for the whole process, and counts small objects only when their span is full. So the count of one call may include other
// goroutines, or earlier work. Allocations that a call makes each time are in all of the counts.
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
