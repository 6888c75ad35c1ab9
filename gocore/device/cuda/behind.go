package cuda

import (
	"sync"
	"time"
)

// behindFor is how long a stream that had not come to a mark is taken not to have come to it: a question to the driver takes 2 µs, and a
// capture has tens of marks it might ask for.
const behindFor = 50 * time.Microsecond

// behind remembers of some streams which mark they had not come to when the driver was asked last. A stream whose place another one took is
// forgotten: that costs a question.
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

// still says that the stream had not come to this mark, nor to one before it, a moment ago.
func (b *behind) still(s Stream, number uint64) bool {
	b.mu.Lock()
	p := *b.at(s)
	b.mu.Unlock()
	return p.stream == s && number >= p.number && time.Now().Before(p.until)
}
