package host

import "velocpy/gocore/tier"

// Cache is the host tier as its memory sees it.
type Cache interface {
	tier.Cache
	// Room is how many bytes the devices can capture without waiting for a flush. LinkRate is the rate of all their links in bytes/s: as it was measured, or as the
	// devices say. The lock is held.
	Room() int64
	LinkRate(measured bool) float64
}
