package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memBlock is the unit that a loss of power keeps or loses, except for torn blocks.
const memBlock = 4096

// memNode is a file. The lock of its disk guards it.
type memNode struct {
	disk   *Mem
	named  bool // scratch files do not survive a crash
	links  int  // names and open files
	locked bool
	chunks map[int64]*[memChunk]byte
	size   int64 // an allocated chunk that was never written maps to nil

	stable     map[int64]*[memBlock]byte // content at the last Sync; no entry: zeros
	stableSize int64
	dirty      map[int64]struct{} // blocks that the next Sync makes durable
	astray     map[int64]struct{} // blocks that no later Sync makes durable, since one has failed
	sizeAstray bool
}

func newMemNode(m *Mem) *memNode {
	return &memNode{
		disk: m, chunks: map[int64]*[memChunk]byte{}, stable: map[int64]*[memBlock]byte{}, dirty: map[int64]struct{}{}, astray: map[int64]struct{}{},
	}
}

// unlink frees the space with the last name and the last open file.
func (n *memNode) unlink() {
	if n.links--; n.links == 0 {
		n.disk.used -= int64(len(n.chunks)) * memChunk
		n.chunks = nil
	}
}

// touch marks a range as different from the stable content.
func (n *memNode) touch(off, end int64) {
	if !n.named {
		return
	}
	for b := off / memBlock; b*memBlock < end; b++ {
		n.dirty[b] = struct{}{}
	}
}

// read fills p with the bytes at off; zeros beyond the end and in holes.
func (n *memNode) read(p []byte, off int64) {
	for done := 0; done < len(p); {
		at := off + int64(done)
		in := at % memChunk
		part := p[done:min(len(p), done+int(memChunk-in))]
		if chunk := n.chunks[at/memChunk]; chunk != nil {
			copy(part, chunk[in:])
		} else {
			clear(part)
		}
		done += len(part)
	}
}

func (n *memNode) write(p []byte, off int64) (int, error) {
	for done := 0; done < len(p); {
		at := off + int64(done)
		if err := n.reserve(at / memChunk); err != nil {
			return done, fmt.Errorf("write at %d: %w", at, err)
		}
		chunk := n.chunks[at/memChunk]
		if chunk == nil {
			chunk = new([memChunk]byte)
			n.chunks[at/memChunk] = chunk
		}
		part := copy(chunk[at%memChunk:], p[done:])
		n.touch(at, at+int64(part))
		done += part
		n.grow(off + int64(done))
	}
	return len(p), nil
}

func (n *memNode) grow(size int64) {
	if size > n.size {
		n.size, n.sizeAstray = size, false
	}
}

func (n *memNode) reserve(index int64) error {
	if _, ok := n.chunks[index]; ok {
		return nil
	}
	if n.disk.used+memChunk > n.disk.capacity {
		return unix.ENOSPC
	}
	n.disk.used += memChunk
	n.chunks[index] = nil
	return nil
}

// zero clears a range, and frees its whole chunks.
func (n *memNode) zero(off, end int64) {
	for at := off; at < end; {
		to := min(end, (at/memChunk+1)*memChunk)
		if chunk, ok := n.chunks[at/memChunk]; ok && to-at == memChunk {
			delete(n.chunks, at/memChunk)
			n.disk.used -= memChunk
		} else if chunk != nil {
			clear(chunk[at%memChunk : at%memChunk+to-at])
		}
		at = to
	}
	n.touch(off, end)
}

// last is the end of the last chunk.
func (n *memNode) last() (end int64) {
	for index := range n.chunks {
		end = max(end, (index+1)*memChunk)
	}
	return end
}

func (n *memNode) sync() {
	for b := range n.dirty {
		block := new([memBlock]byte)
		n.read(block[:], b*memBlock)
		n.stable[b] = block
	}
	clear(n.dirty)
	if !n.sizeAstray {
		n.stableSize = n.size
	}
}

// leaveBehind is the effect of a failed Sync: the system considers all blocks written although they are not.
func (n *memNode) leaveBehind() {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	for b := range n.dirty {
		n.astray[b] = struct{}{}
	}
	clear(n.dirty)
	n.sizeAstray = n.size != n.stableSize
}

// memFile is an open file.
type memFile struct {
	node   *memNode
	write  bool
	direct bool
	closed bool
}

func (f *memFile) check(p []byte, off int64) error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case off < 0:
		return unix.EINVAL
	case f.direct:
		address := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p))))
		if (uint64(off)|uint64(len(p))|address)%DefaultAlign != 0 {
			return fmt.Errorf("direct i/o of %d bytes at %d, address %#x: %w", len(p), off, address, unix.EINVAL)
		}
	}
	return nil
}

// changes runs a call that changes the file.
func (f *memFile) changes(call func(n *memNode) error) error {
	f.node.disk.mu.Lock()
	defer f.node.disk.mu.Unlock()
	switch {
	case f.closed:
		return fs.ErrClosed
	case !f.write:
		return unix.EBADF
	}
	return call(f.node)
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.node.disk.mu.Lock()
	defer f.node.disk.mu.Unlock()
	if err := f.check(p, off); err != nil {
		return 0, err
	}
	var err error
	if off+int64(len(p)) > f.node.size {
		p, err = p[:max(0, f.node.size-off)], io.EOF
	}
	f.node.read(p, off)
	return len(p), err
}

func (f *memFile) WriteAt(p []byte, off int64) (done int, err error) {
	err = f.changes(func(n *memNode) error {
		if err := f.check(p, off); err != nil {
			return err
		}
		done, err = n.write(p, off)
		return err
	})
	return done, err
}

func (f *memFile) Allocate(off, n int64) error {
	return f.changes(func(node *memNode) error {
		if off < 0 || n < 0 {
			return unix.EINVAL
		}
		var more []int64
		for at := off / memChunk; at*memChunk < off+n; at++ {
			if _, ok := node.chunks[at]; !ok {
				more = append(more, at)
			}
		}
		if node.disk.used+int64(len(more))*memChunk > node.disk.capacity {
			return fmt.Errorf("allocate %d bytes at %d: %w", n, off, unix.ENOSPC)
		}
		for _, at := range more {
			node.chunks[at] = nil
		}
		node.disk.used += int64(len(more)) * memChunk
		node.grow(off + n)
		return nil
	})
}

func (f *memFile) PunchHole(off, n int64) error {
	return f.changes(func(node *memNode) error {
		node.zero(off, off+n)
		return nil
	})
}

func (f *memFile) Truncate(size int64) error {
	return f.changes(func(n *memNode) error {
		if size < 0 {
			return unix.EINVAL
		}
		if end := n.last(); size < end {
			n.zero(size, end)
		}
		if size != n.size {
			n.size, n.sizeAstray = size, false
		}
		return nil
	})
}

func (f *memFile) Size() (int64, error) {
	f.node.disk.mu.Lock()
	defer f.node.disk.mu.Unlock()
	if f.closed {
		return 0, fs.ErrClosed
	}
	return f.node.size, nil
}

func (f *memFile) Sync() error {
	f.node.disk.mu.Lock()
	defer f.node.disk.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.node.sync()
	return nil
}

func (f *memFile) Close() error {
	f.node.disk.mu.Lock()
	defer f.node.disk.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	f.node.disk.open--
	f.node.unlink()
	return nil
}

func (f *memFile) Direct() bool { return f.direct }
func (f *memFile) Align() int   { return DefaultAlign }
