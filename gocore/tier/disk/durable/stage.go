package durable

import (
	"velocpy/gocore/base/memory"
	"velocpy/gocore/tier/disk/segment"
)

// stage reads a source from far away: bytes of several checkpoints at once, where they lie one behind the other. It has a buffer of a fixed length, and passes other
// reads on.
type stage struct {
	data      *segment.Space
	buffer    *memory.Mapping // nil: all reads are passed on
	from, end int64           // of the space: the range that the buffer has
}

// stageGap bounds the bytes that are read in vain between two checkpoints.
const stageGap = 64 << 10

// reach reads the next checkpoints of a queue, if the buffer lacks the first one.
func (s *stage) reach(queue []source) {
	x := queue[0]
	if s.buffer == nil || s.from <= x.from && x.from+x.bytes <= s.end {
		return
	}
	from, end := x.from, x.from
	for _, next := range queue {
		if next.from > end+stageGap || next.from+next.bytes-from > s.buffer.Size() {
			break
		}
		end = max(end, next.from+next.bytes)
	}
	s.from, s.end = 0, 0
	if end == from { // one checkpoint is longer than the buffer
		return
	}
	s.data.Grow(end)
	if s.data.Read(from, s.buffer.Bytes(0, end-from)) == nil { // else its own read tells which of them has the error
		s.from, s.end = from, end
	}
}

// Read implements reader.
func (s *stage) Read(off int64, p []byte) error {
	if s.from <= off && off+int64(len(p)) <= s.end {
		copy(p, s.buffer.Bytes(off-s.from, int64(len(p))))
		return nil
	}
	return s.data.Read(off, p)
}

// open maps the buffer of a source that is read by so many bytes at once; 0: none is needed.
func (s *stage) open(bytes int64) (err error) {
	if bytes > 0 {
		s.buffer, err = memory.Map("backup buffer", bytes)
	}
	return err
}

// close gives the buffer back.
func (s *stage) close() error {
	if s.buffer == nil {
		return nil
	}
	m := s.buffer
	s.buffer, s.from, s.end = nil, 0, 0
	return m.Unmap()
}
