package segment

import (
	"fmt"
	"sync"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"
)

const (
	// MostStreamed is the most bytes that one range of Stream may have.
	MostStreamed = 1 << 20
	// StreamPurpose is the name under which package memory accounts the buffers for streams.
	StreamPurpose = "stream buffers"
	// streamRoom is the length of a buffer: a range, and the rest of the blocks that it begins and ends in.
	streamRoom = MostStreamed + 2*Block
	// streamBuffers is how many buffers a space has for streams.
	streamBuffers = 8
)

// stream reads ranges of a space, each to a buffer that the next one uses again.
type stream struct {
	ranges int
	where  func(i int) (off, n int64)
	take   func(i int, p []byte) error
}

// streamPool has the buffers for streams. The first stream maps them. The buffer that came back last is taken first, so that few are touched where few are
// in use.
type streamPool struct {
	mapping *memory.Mapping
	err     error
	once    sync.Once

	left chan struct{} // one element for each free buffer
	mu   sync.Mutex
	free [][]byte
}

// ready maps the buffers, once.
func (b *streamPool) ready() error {
	b.once.Do(func() {
		if b.mapping, b.err = memory.Map(StreamPurpose, streamBuffers*streamRoom); b.err != nil {
			return
		}
		b.left = make(chan struct{}, streamBuffers)
		for i := range int64(streamBuffers) {
			b.give(b.mapping.Bytes(i*streamRoom, streamRoom))
		}
	})
	return b.err
}

// take waits until a buffer is free. The wait ends because no goroutine holds two.
func (b *streamPool) take() []byte {
	<-b.left
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.free) - 1
	buf := b.free[last]
	b.free = b.free[:last]
	return buf
}

func (b *streamPool) give(buf []byte) {
	b.mu.Lock()
	b.free = append(b.free, buf)
	b.mu.Unlock()
	b.left <- struct{}{}
}

// close unmaps the buffers. No stream is under way.
func (b *streamPool) close() error {
	if b.mapping == nil {
		return nil
	}
	return b.mapping.Unmap()
}

// Streams tells whether Stream is of use. Requests to a distant file system should be larger than a buffer.
func (s *Space) Streams() bool { return s.opt.ReadBytes <= readPieceBytes }

// Stream reads so many ranges, of at most MostStreamed bytes each, and calls take with the bytes of each in a buffer of the space, which stays until take
// returns. Calls come in any order, from several goroutines at once. After an error of a read, or of take, no further ranges are read, and Stream returns
// the first error. take must not read from the space.
func (s *Space) Stream(ranges int, where func(i int) (off, n int64), take func(i int, p []byte) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.closed:
		return ErrClosed
	case ranges == 0:
		return nil
	}
	for i := range ranges {
		off, n := where(i)
		if err := s.within(read, off, n); err != nil {
			return err
		}
		if n > MostStreamed {
			return fmt.Errorf("a stream of %s at once, of at most %s: %w", quantity.Exact(n), quantity.Exact(MostStreamed), ErrRange)
		}
	}
	if err := s.streams.ready(); err != nil {
		return err
	}
	t := &transfer{space: s, dir: read, stream: &stream{ranges: ranges, where: where, take: take}}
	return t.share(streamBuffers - 1)
}

// one reads a range and hands it over.
func (st *stream) one(t *transfer, i int) (err error) {
	defer safego.Guard("segment stream", &err)
	off, n := st.where(i)
	buf := t.space.streams.take()
	defer t.space.streams.give(buf)
	from := off & (Block - 1) // so a block of the file lies at a block of the buffer
	p := buf[from : from+n]
	for at := int64(0); at < n; { // a range may reach into the next segment
		c := t.space.cut(read, off+at, p[at:])
		err := t.onFile(c, func(file vfs.File) error { return readAround(file, buf, from+at, c) })
		if err != nil {
			return err
		}
		at += int64(len(c.p))
	}
	return st.take(i, p)
}

// readAround reads a piece to a place of a buffer. With direct I/O it also reads the rest of the blocks that the piece begins and ends in.
func readAround(file vfs.File, buf []byte, at int64, c piece) error {
	if !file.Direct() {
		return straight(file, read, c.p, c.off)
	}
	align := int64(file.Align())
	before := c.off & (align - 1)
	n := (before + int64(len(c.p)) + align - 1) &^ (align - 1)
	return straight(file, read, buf[at-before:at-before+n], c.off-before)
}
