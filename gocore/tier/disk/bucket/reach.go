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
	memos  map[string]*memo
}

// memo is the last image of a place that this process has read or made. The next caller reads the newer commit alone.
type memo struct {
	mu    sync.Mutex
	image *Image
}

// mostKept bounds the catalog of an image that is kept.
const mostKept = 64 << 20

func (m *memo) last() *Image {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.image
}

func (m *memo) keep(i *Image) {
	if m == nil {
		return
	}
	bytes := 0
	for _, f := range i.files {
		bytes += len(f.bytes)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.image = i; bytes > mostKept {
		m.image = nil
	}
}

// Use sets the server of buckets that are opened from now on.
func (r *Reach) Use(server Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server, r.memos = server, map[string]*memo{}
}

// At returns the place that s3://bucket/prefix names.
func (r *Reach) At(place string) (*Bucket, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.server == nil {
		return nil, fmt.Errorf("%s: %w: %w", place, ErrNoProgram, unix.EPIPE)
	}
	b, err := At(r.server, place)
	if err != nil {
		return nil, err
	}
	if b.memo = r.memos[b.Place()]; b.memo == nil {
		b.memo = &memo{}
		r.memos[b.Place()] = b.memo
	}
	return b, nil
}
