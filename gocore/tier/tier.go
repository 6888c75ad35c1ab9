// Package tier holds what the memories of the tiers have in common: what they need of the store whose checkpoints lie in them.
package tier

// Shared is what every tier sees of the store's cache. All methods but Lock and Resized are called with the lock held.
type Shared interface {
	Lock()
	Unlock()
	// Leave is Unlock after a change of the engine's state: it also notifies the callers and workers that the change concerns.
	Leave()
	// Closing tells whether the store has been closed.
	Closing() bool
	// Hold keeps the store's memory until as many calls of Release.
	Hold()
	Release()
	// Resized wakes the callers that wait for a resize.
	Resized()
}

// Cache is what the memory of a tier sees of the store's cache: the lock, and the engine's account of this tier.
type Cache interface {
	Shared

	// Capacity is the tier's, in bytes. Used is how many bytes are in use, HighWater the most that have been at once. Behind is how many bytes behind the capacity
	// are still in use, Reach the offset at which the last byte in use ends.
	Capacity() int64
	Used() int64
	HighWater() int64
	Behind() int64
	Reach() int64
	Grow(bytes int64)
	Shrink(bytes int64)
	// Drain does at most so many steps of emptying what lies behind the capacity. Draining tells whether another step can be done now. Settled tells that
	// nothing more leaves unless the application or a lower tier does something.
	Drain(steps int)
	Draining() bool
	Settled() bool

	// Resizing tells whether a resize waits for memory to be given back.
	Resizing() bool
}

// DrainSteps bounds how long the cache's lock is held by one call of Drain.
const DrainSteps = 16

// Notify sends to a channel of capacity one whose receiver may have been notified already.
func Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
