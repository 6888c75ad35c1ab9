package bucket

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Reach knows the server that buckets are reached by. The zero value knows none.
type Reach struct {
	mu     sync.Mutex
	server Server
}

// Use sets the server of buckets that are opened from now on.
func (r *Reach) Use(server Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server = server
}

// At returns the place that s3://bucket/prefix names.
func (r *Reach) At(place string) (*Bucket, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return nil, fmt.Errorf("%s: %w: %w", place, ErrNoLanes, unix.EPIPE)
	}
	return At(r.server, place)
}
