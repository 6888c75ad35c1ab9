package journal

import "bytes"

// A sync of bytes that take the place of others costs the medium less than one that also brings down how long the file has become. So a writer makes a file
// longer by more than it needs, and fills the room for later frames with a word that no frame begins with. It is no zero: a sector that the medium has lost
// often reads as zeroes, and must be told from one that was never used.
const (
	unused     = "VELOFREE"
	aheadLeast = 8 << 10 // bytes of room that are made at once: as many as there are in frames, within these bounds
	aheadMost  = 256 << 10
)

var unusedRoom = bytes.Repeat([]byte(unused), aheadMost/grain)

// provide makes room behind the frames, in the same sync as the frame that was written before. Without it the log does as well: a file that there is no
// room for is cut again, and does not grow ahead any more.
func (l *Log) provide() {
	if l.offset <= l.room || l.cramped {
		return
	}
	more := min(max(l.offset, aheadLeast), aheadMost) / grain * grain
	n, err := l.file.WriteAt(unusedRoom[:more], l.offset)
	if l.room = l.offset + int64(n); err != nil {
		l.giveRoomBack()
		l.cramped = true
	}
}

// Ahead is how many bytes of the disk the log has taken for later frames.
func (l *Log) Ahead() int64 {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.file == nil {
		return 0
	}
	return max(l.room-l.offset, 0)
}

// giveRoomBack ends the file behind its frames. Where that fails, a reader finds room that was not used.
func (l *Log) giveRoomBack() {
	if l.room > l.offset {
		_ = l.file.Truncate(l.offset)
		l.room = l.offset
	}
}

// unusedFrom is where the room begins that was not used, at the end of a file: nothing but its word stands from there on.
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
