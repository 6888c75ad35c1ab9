package durable

import (
	"errors"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/tier/disk/segment"
)

// stage reads a source from far away: large ranges, also of several checkpoints that lie one behind the other. While the caller uses one range, a goroutine reads the next
// one. It has two buffers of a fixed length, and passes reads on that are out of order. One goroutine uses it, and the bytes do not change meanwhile.
type stage struct {
	data  *segment.Space
	size  int64 // of a buffer; 0: all reads are passed on
	free  []*memory.Mapping
	queue []source // the checkpoints from the present one on, by offset
	now   staged   // the range that the caller uses
	next  staged   // the range that is read ahead
}

// staged is a range of the space in a buffer. The zero value is empty.
type staged struct {
	from, end int64
	buffer    *memory.Mapping
	read      chan error // nil: the read has ended
}

func (r *staged) has(off int64) bool { return r.from <= off && off < r.end }

// stageGap bounds the bytes that are read in vain between two checkpoints.
const stageGap = 64 << 10

// reach tells the checkpoints that are read next.
func (s *stage) reach(queue []source) { s.queue = queue }

// Read implements reader.
func (s *stage) Read(off int64, p []byte) error {
	for len(p) > 0 {
		n, err := s.some(off, p)
		if err != nil {
			return err
		}
		off, p = off+int64(n), p[n:]
	}
	return nil
}

// some reads the first bytes of p, or all of them.
func (s *stage) some(off int64, p []byte) (int, error) {
	if !s.now.has(off) && !s.turn(off) {
		return len(p), s.data.Read(off, p)
	}
	return copy(p, s.now.buffer.Bytes(off-s.now.from, s.now.end-off)), nil
}

// turn makes the range the present one that begins at an offset, or that is read ahead and has it, and begins to read the range behind it. It returns false if there is none,
// or if it cannot be read: the caller's own read tells why.
func (s *stage) turn(off int64) bool {
	if !s.next.has(off) {
		if from, end := s.reachable(off); from != off || end == from {
			return false
		}
		s.drop(&s.next)
		s.next = s.begin(off)
	}
	s.drop(&s.now)
	s.now, s.next = s.next, staged{}
	if err := s.now.wait(); err != nil {
		s.drop(&s.now)
		return false
	}
	s.next = s.begin(s.now.end)
	return true
}

// reachable returns the next bytes of checkpoints from an offset on, no more than a buffer has room for; none where from equals end.
func (s *stage) reachable(off int64) (from, end int64) {
	for _, x := range s.queue {
		last := x.from + x.bytes
		if end == from { // none yet
			if last <= off {
				continue
			}
			from = max(off, x.from)
			end = from
		}
		if x.from > end+stageGap {
			break
		}
		if end = max(end, last); end-from >= s.size {
			return from, from + s.size
		}
	}
	return from, end
}

// begin begins to read the next bytes of checkpoints from an offset on.
func (s *stage) begin(off int64) (r staged) {
	from, end := s.reachable(off)
	if end == from {
		return staged{}
	}
	last := len(s.free) - 1
	r, s.free = staged{from, end, s.free[last], make(chan error, 1)}, s.free[:last]
	data, p, read := s.data, r.buffer.Bytes(0, end-from), r.read
	data.Grow(end)
	safego.Go("backup read-ahead", func() {
		err := safego.ErrPoisoned
		defer func() { read <- err }()
		err = data.Read(from, p)
	})
	return r
}

// wait waits until the range has been read.
func (r *staged) wait() (err error) {
	if r.read != nil {
		err = <-r.read
		r.read = nil
	}
	return err
}

// drop gives the buffer of a range back, once nothing is read into it.
func (s *stage) drop(r *staged) {
	if r.buffer != nil {
		_ = r.wait() // nothing uses the bytes
		s.free = append(s.free, r.buffer)
	}
	*r = staged{}
}

// open maps the buffers of a source that is read by so many bytes at once; 0: none are needed.
func (s *stage) open(bytes int64) error {
	if bytes == 0 {
		return nil
	}
	for range 2 {
		m, err := memory.Map("backup buffer", bytes)
		if err != nil {
			return err
		}
		s.free = append(s.free, m)
	}
	s.size = bytes
	return nil
}

// close gives the buffers back.
func (s *stage) close() (err error) {
	s.drop(&s.now)
	s.drop(&s.next)
	for _, m := range s.free {
		err = errors.Join(err, m.Unmap())
	}
	s.free, s.size = nil, 0
	return err
}
