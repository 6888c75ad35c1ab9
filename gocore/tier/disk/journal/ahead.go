package journal

import (
	"bytes"
	"sync"
)

// A sync of overwritten bytes costs the medium less than a sync that also changes the file's length. So a writer extends a file by more than it needs, and
// fills the room for later frames with a word that no frame begins with. The word is not zero: a sector that the medium has lost often reads as zeros, and
// must differ from one that was never used.
const (
	unused     = "VELOFREE"
	aheadLeast = 8 << 10 // bytes that are preallocated at once: as many as the frames have, within these bounds
	aheadMost  = 256 << 10
)

// unusedRoom is made when a log needs it first: a process that begins without a durable store does not.
var unusedRoom = sync.OnceValue(func() []byte { return bytes.Repeat([]byte(unused), aheadMost/grain) })

// provide preallocates room after the frames; the sync of the frame before covers it. The log works without: if the disk has no room, the file is truncated
// again and preallocates no more.
func (l *Log) provide() {
	if l.offset <= l.room || l.cramped {
		return
	}
	more := min(max(l.offset, aheadLeast), aheadMost) / grain * grain
	n, err := l.file.WriteAt(unusedRoom()[:more], l.offset)
	if l.room = l.offset + int64(n); err != nil {
		l.giveRoomBack()
		l.cramped = true
	}
}

// Ahead is the number of preallocated bytes for later frames.
func (l *Log) Ahead() int64 {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.file == nil {
		return 0
	}
	return max(l.room-l.offset, 0)
}

// giveRoomBack truncates the file after its frames. If that fails, a reader finds unused room.
func (l *Log) giveRoomBack() {
	if l.room > l.offset {
		_ = l.file.Truncate(l.offset)
		l.room = l.offset
	}
}

// unusedFrom returns the offset of the unused room at the end of a file: only the filler word follows.
func (s *source) unusedFrom() (int64, error) {
	at := s.size
	for at%grain == 0 && at > 0 {
		from := max(at-aheadMost, 0) / grain * grain
		p, err := s.bytes(from, int(at-from), leastRead)
		if err != nil {
			return 0, err
		}
		for len(p) > 0 && string(p[len(p)-grain:]) == unused {
			p = p[:len(p)-grain]
		}
		if at = from + int64(len(p)); len(p) > 0 {
			return at, nil
		}
	}
	return at, nil
}
