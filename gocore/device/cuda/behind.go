package cuda

import (
	"sync"
	"time"
)

// behindFor is how long a stream is assumed not to have reached an event after the driver said so. A query of the driver takes 2 µs, and a capture
// might query tens of events.
const behindFor = 50 * time.Microsecond

// behind remembers for some streams an event that they had not reached at the last query. If another stream takes the entry of one, that costs one more
// query.
type behind struct {
	mu     sync.Mutex
	places [16]stuck
}

type stuck struct {
	stream Stream
	number uint64
	until  time.Time
}

func (b *behind) at(s Stream) *stuck {
	hash := uint64(s) * 0x9E3779B97F4A7C15
	return &b.places[hash>>60]
}

func (b *behind) note(s Stream, number uint64) {
	until := time.Now().Add(behindFor)
	b.mu.Lock()
	defer b.mu.Unlock()
	*b.at(s) = stuck{s, number, until}
}

// still says that the stream had not reached this event, or an earlier one, a moment ago.
func (b *behind) still(s Stream, number uint64) bool {
	b.mu.Lock()
	p := *b.at(s)
	b.mu.Unlock()
	return p.stream == s && number >= p.number && time.Now().Before(p.until)
}
