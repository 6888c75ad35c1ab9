// Package logring keeps the core's log records until Drain takes them.
//
// The core writes to no file descriptor; Python drains the ring into logging. The ring is bounded: without a reader the oldest records are dropped,
// and counted.
package logring

import (
	"strconv"
	"sync"
	"time"

	"velocpy/gocore/base/pytext"
)

// Level is the importance of a record. The numbers are those of Python's logging.
type Level int

const (
	Debug   Level = 10
	Info    Level = 20
	Warning Level = 30
	Error   Level = 40
)

// Kept is how many records the process's ring holds, MaxMessage the largest number of bytes of a message; together they bound it to 2 MiB.
const (
	Kept       = 512
	MaxMessage = 4 << 10
)

// Record is one message with the time of Add in nanoseconds since 1970.
type Record struct {
	Level   Level
	Message string
	TimeNs  int64
}

// Ring holds the latest records. The zero value is unusable; see New.
type Ring struct {
	mu      sync.Mutex
	records []Record
	first   int
	count   int
	dropped int64 // since the last Drain that reported it
}

var process = New(Kept)

// Add appends to the process's ring. It blocks only for other calls of this package.
func Add(level Level, message string) { process.Add(level, message) }

// Drain takes the oldest records, at most max of them, out of the process's ring; see Ring.Drain.
func Drain(max int) []Record { return process.Drain(max) }

// New returns a ring of n records (at least one).
func New(n int) *Ring { return &Ring{records: make([]Record, n+1-min(n, 1))} }

// Add appends a record, cut to at most MaxMessage bytes at the end of a character. When the ring is full the oldest record is lost, and counted.
func (r *Ring) Add(level Level, message string) {
	message = pytext.Cut(message, MaxMessage)
	now := time.Now().UnixNano()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == len(r.records) {
		r.first = (r.first + 1) % len(r.records)
		r.count--
		r.dropped++
	}
	r.records[(r.first+r.count)%len(r.records)] = Record{Level: level, Message: message, TimeNs: now}
	r.count++
}

// Drain removes at most max records, oldest first. If records were lost since the last Drain that returned any, the first one says how many; it
// counts towards max.
func (r *Ring) Drain(max int) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Record
	if max > 0 && r.dropped > 0 {
		text := strconv.FormatInt(r.dropped, 10) + " log records were lost: nobody drained them in time"
		out = append(out, Record{Level: Warning, Message: text, TimeNs: time.Now().UnixNano()})
		r.dropped = 0
	}
	for len(out) < max && r.count > 0 {
		out = append(out, r.records[r.first])
		r.records[r.first] = Record{}
		r.first = (r.first + 1) % len(r.records)
		r.count--
	}
	return out
}
