package durable

import (
	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/tier/disk/segment"
)

// checkPurpose is the name under which package memory accounts the buffers.
const checkPurpose = "check buffers"

// windowBytes is the size of a read: one large transfer keeps a disk busier than many small ones.
const windowBytes = 4 << 20

// window reads a range piece by piece, with read-ahead.
type window struct {
	data      reader
	mapping   *memory.Mapping
	buffer    []byte
	usual     int64 // length of the buffer, and of a read
	from, end int64 // of the space: the range that the buffer has
	limit     int64 // end of the read-ahead
	leaf      []byte
	// difference is the reader of the last row of a difference; nil: there was none.
	difference *differenceReader
}

// reader reads bytes of the space.
type reader interface {
	Read(off int64, p []byte) error
}

func newWindow(data *segment.Space) (*window, error) { return newWindowOf(data, windowBytes) }

// newWindowOf returns a window that reads bytes at once: at least a leaf and a block.
func newWindowOf(data reader, bytes int64) (*window, error) {
	w := &window{data: data, usual: bytes}
	return w, w.resize(bytes)
}

// resize maps a buffer of a length in place of the present one, whose bytes are lost.
func (w *window) resize(bytes int64) error {
	if err := w.close(); err != nil {
		return err
	}
	m, err := memory.Map(checkPurpose, bytes)
	if err != nil {
		return err
	}
	w.mapping, w.buffer = m, m.Bytes(0, bytes)
	return nil
}

func (w *window) close() error {
	w.from, w.end, w.buffer, w.difference = 0, 0, nil, nil
	if w.mapping == nil {
		return nil
	}
	m := w.mapping
	w.mapping = nil
	return m.Unmap()
}

// begin discards the buffer. No read-ahead goes beyond limit.
func (w *window) begin(limit int64) { w.from, w.end, w.limit = 0, 0, limit }

// shrink gives the memory of a long range back.
func (w *window) shrink() error {
	if int64(len(w.buffer)) <= w.usual {
		return nil
	}
	return w.resize(w.usual)
}

// leafBuffer returns room for the decoded bytes of a leaf.
func (w *window) leafBuffer() []byte {
	if w.leaf == nil {
		w.leaf = make([]byte, checksum.LeafBytes)
	}
	return w.leaf
}

// at returns the bytes of a range; they are valid until the next call. A range beyond the usual length takes as much memory until shrink is called.
func (w *window) at(off, n int64) ([]byte, error) {
	if off < w.from || off+n > w.end {
		from := off / segment.Block * segment.Block
		if need := off + n - from; need > int64(len(w.buffer)) {
			if err := w.resize(segment.Blocks(need)); err != nil {
				return nil, err
			}
		}
		w.from, w.end = from, max(off+n, min(from+w.usual, w.limit))
		if err := w.data.Read(from, w.buffer[:w.end-from]); err != nil {
			w.from, w.end = 0, 0
			p := w.buffer[:n]
			if err := w.data.Read(off, p); err != nil { // the error may concern the read-ahead only, so read the requested part alone
				return nil, err
			}
			return p, nil
		}
	}
	return w.buffer[off-w.from : off-w.from+n], nil
}
