package host

// Cache is what the memory of the host tier needs of the store whose checkpoints lie in it: the store's lock, and the policy of the tier. All methods but Lock
// and Resized are called with the lock held.
type Cache interface {
	Lock()
	Unlock()
	// Leave is Unlock after a change of the tier: it also notifies the callers and workers that the change concerns.
	Leave()
	// Closing tells whether the store has been closed.
	Closing() bool
	// Hold keeps the memory mapped until as many calls of Release.
	Hold()
	Release()

	// Capacity is the tier's, in bytes. Behind is how many bytes behind it are still in use. HighWater is the most bytes that were in use at once.
	Capacity() int64
	Behind() int64
	HighWater() int64
	Grow(bytes int64)
	Shrink(bytes int64)
	// Drain does at most so many steps of emptying what lies behind the capacity. Draining tells whether another step can be done now. Settled tells that
	// nothing more leaves unless the application or a lower tier does something.
	Drain(steps int)
	Draining() bool
	Settled() bool

	// Room is how many bytes the devices can capture without waiting for a flush. LinkRate is the rate of all their links in bytes/s: as it was measured, or as the
	// devices say.
	Room() int64
	LinkRate(measured bool) float64
	// Resizing tells whether a resize waits for memory to be given back. Resized wakes those that do.
	Resizing() bool
	Resized()
}
