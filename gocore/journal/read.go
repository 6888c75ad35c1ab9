package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"velocpy/gocore/vfs"

	"github.com/zeebo/xxh3"
)

// State is what Read has found, for whoever goes on writing.
type State struct {
	Last   uint64 // the last batch that counts; 0: none
	Damage []Damage
	Torn   int64 // bytes at the end of the newest file that are no frame: of what was not acknowledged
	Closed bool  // the log was closed behind the last batch
	Bytes  int64 // of the files that count
	Files  int   // how many do
	// Shadowed: older files are there beside the snapshot that the log starts from, and it was not closed. Whoever wrote the snapshot may have died before it
	// was synced, so that the older ones may count after all: who goes on calls Compact before anything else.
	Shadowed bool
	newest   uint64 // file number

	batch  []byte // payload of the last batch that was found
	number uint64 // which one that is; 0: it was synced, or there is none
}

// Read gives all records that count to f, in their order: those of the snapshot, if there is one, and of the batches behind it. It changes nothing. What
// is damaged is left out and told; an error of f, or of the file system, ends it.
func Read(o Options, f func(record []byte) error) (*State, error) {
	r := &reader{o: o, f: f, state: &State{}}
	defer r.close()
	chain, err := r.chain()
	for tries := 0; errors.Is(err, unix.ENOENT) && tries < again; tries++ { // a writer has started anew meanwhile
		r.close()
		r.state = &State{}
		chain, err = r.chain()
	}
	if err != nil {
		return nil, err
	}
	for i, file := range chain {
		r.state.Bytes += file.scan.size
		r.state.Files++
		limit := uint64(noLimit)
		if i+1 < len(chain) {
			limit = chain[i+1].begin.behind
		}
		if err := r.replay(file, limit); err != nil {
			return nil, err
		}
	}
	r.state.Shadowed = r.state.Shadowed && !r.state.Closed
	return r.state, nil
}

// again is how often the files are looked for anew.
const again = 100

type reader struct {
	o     Options
	f     func(record []byte) error
	state *State
	files []vfs.File
}

func (r *reader) close() {
	for _, file := range r.files {
		_ = file.Close() // nothing was written to it
	}
	r.files = nil
}

// opened is a file of the log.
type opened struct {
	number uint64
	begin  begin
	scan   scan
}

// chain are the files that count, oldest first: from the newest one with a whole snapshot on, or all.
func (r *reader) chain() ([]opened, error) {
	numbers, err := r.o.files()
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	r.state.newest = numbers[len(numbers)-1]
	var chain []opened
	defer func() { r.state.Shadowed = len(chain) > 0 && chain[0].number > numbers[0] }()
	for i := len(numbers) - 1; i >= 0; i-- {
		file, counts, err := r.look(numbers[i])
		if err != nil {
			return nil, err
		}
		if !counts {
			continue
		}
		chain = append([]opened{file}, chain...)
		if file.begin.snapshot {
			break
		}
	}
	return chain, nil
}

// look tells whether a file counts: not if its first frame never came down, nor if it was to start from a snapshot that is not whole, as nothing was
// acknowledged in it. A first frame that is only damaged is made up for by those behind it.
func (r *reader) look(number uint64) (file opened, counts bool, err error) {
	if file, err = r.open(number); err != nil {
		return file, false, err
	}
	s := file.scan
	h, payload, ok, err := s.next()
	if err != nil {
		return file, false, err
	}
	if ok && h.kind == kindBegin {
		if file.begin, counts = parseBegin(payload); !counts {
			return file, false, fmt.Errorf("%s: %w", r.o.path(number), ErrVersion)
		}
		if !file.begin.snapshot {
			return file, true, nil
		}
	}
	if !ok {
		if file.begin, counts, err = s.resumed(); err != nil || counts {
			file.scan.offset = frameBytes(beginBytes)
			return file, counts, err
		}
	}
	h, found, err := s.decisive()
	if err != nil || !found {
		return file, false, err
	}
	if !counts {
		r.damage(number, 0, 0, 0, "the file's first frame is damaged")
		r.state.Damage[len(r.state.Damage)-1].Harmless = true // what it says follows from what comes behind it
		file.begin = begin{behind: h.sequence, snapshot: h.kind == kindComplete}
		if h.kind == kindBatch {
			file.begin.behind--
		}
	}
	return file, true, nil
}

func (r *reader) open(number uint64) (opened, error) {
	file, err := r.o.FS.Open(r.o.path(number), false, false)
	if err != nil {
		return opened{}, err
	}
	r.files = append(r.files, file)
	size, err := file.Size()
	return opened{number: number, scan: scan{file: file, size: size, at: place{store: r.o.Store, file: number}}}, err
}

func (r *reader) damage(number uint64, offset int64, from, to uint64, why string) {
	r.state.Damage = append(r.state.Damage, Damage{File: fileName(number), Offset: offset, From: from, To: to, Why: why})
}

// noLimit is that of the newest file: all its batches count.
const noLimit = 1<<64 - 1

// replay gives out the records of a file, up to the batch of which a newer file says that it is the last one that counts.
func (r *reader) replay(file opened, limit uint64) error {
	s := &file.scan
	if !file.begin.snapshot && r.state.Last < file.begin.behind {
		r.missing(file, 0, file.begin.behind, "no older file has them")
	}
	r.state.Last, r.state.Closed = max(r.state.Last, file.begin.behind), false
	r.state.number = 0 // whoever began this file had seen the last one before it synced
	for r.state.Last < limit || file.begin.snapshot {
		at := s.offset
		h, payload, ok, err := s.next()
		switch {
		case err != nil:
			return err
		case ok && h.kind == kindBatch && h.sequence > limit, s.offset == s.size && !ok:
			r.missing(file, at, limit, "a frame is missing")
			return nil
		case !ok:
			if again, err := r.past(s, file, at, limit); err != nil || !again {
				return err
			}
		default:
			if done, err := r.frame(file, at, h, payload); done || err != nil {
				return err
			}
		}
	}
	return nil
}

// past goes on behind what is no frame: to the next one, which tells what is missing, or, in the newest file, to nothing: then it was the torn end of what
// was not acknowledged.
func (r *reader) past(s *scan, file opened, at int64, limit uint64) (again bool, err error) {
	h, found, err := s.resync(func(h head) bool {
		return h.kind == kindSnapshot || h.kind == kindComplete || h.kind >= kindBatch && h.sequence > r.state.Last
	})
	switch {
	case err != nil:
		return false, err
	case !found && limit == noLimit:
		r.state.Torn += s.size - at
		return false, nil
	case !found:
		r.missing(file, at, limit, "a frame is damaged")
		return false, nil
	case h.kind == kindBatch && h.sequence > r.state.Last+1:
		r.missing(file, at, min(h.sequence-1, limit), "a frame is damaged")
	case h.kind == kindClosed:
		r.missing(file, at, min(h.sequence, limit), "a frame is damaged")
	case at > 0 || len(r.state.Damage) == 0: // what is wrong with the first frame has been told, where it matters
		r.damage(file.number, at, 0, 0, "a frame is damaged")
		// A frame so short has no records, nor has the first one.
		r.state.Damage[len(r.state.Damage)-1].Harmless = s.offset-at == headBytes || at == 0 && s.offset == frameBytes(beginBytes)
	}
	return true, nil
}

// missing notes that batches up to one are not there.
func (r *reader) missing(file opened, at int64, to uint64, why string) {
	if to != noLimit && to > r.state.Last {
		r.damage(file.number, at, r.state.Last+1, to, why)
		r.state.Last = to
	}
}

func (r *reader) frame(file opened, at int64, h head, payload []byte) (done bool, err error) {
	switch h.kind {
	case kindClosed:
		r.missing(file, at, h.sequence, "the log was closed behind them")
		r.state.Closed = true
		return true, nil
	case kindBatch:
		if h.sequence <= r.state.Last { // no writer does that
			r.damage(file.number, at, h.sequence, h.sequence, "another batch has its number")
			return false, nil
		}
		r.missing(file, at, h.sequence-1, "a frame is missing")
		r.state.Last, r.state.number = h.sequence, h.sequence
		r.state.batch = append(r.state.batch[:0], payload...)
	case kindSnapshot:
		if !file.begin.snapshot {
			r.damage(file.number, at, 0, 0, "a part of a snapshot where there is none")
			return false, nil
		}
	default:
		return false, nil
	}
	whole, err := eachRecord(payload, r.f)
	if !whole {
		r.damage(file.number, at, h.sequence, h.sequence, "its records are not those that its length says")
	}
	return false, err
}

// scan goes over the frames of a file.
type scan struct {
	file   vfs.File
	size   int64
	offset int64
	at     place
	buffer []byte
	hashed int64 // by resync
}

// next is the frame at the present offset, if there is a whole one; then it goes on behind it.
func (s *scan) next() (h head, payload []byte, ok bool, err error) {
	h, ok, err = s.peek()
	if !ok || err != nil {
		return h, nil, false, err
	}
	if int64(cap(s.buffer)) < int64(h.length) {
		s.buffer = make([]byte, h.length)
	}
	payload = s.buffer[:h.length]
	if err := s.read(payload, s.offset+headBytes); err != nil {
		return h, nil, false, err
	}
	var rest [grain]byte
	if err := s.read(rest[:padding(len(payload))], s.offset+headBytes+int64(len(payload))); err != nil {
		return h, nil, false, err
	}
	if xxh3.Hash(payload) != h.payload || rest != [grain]byte{} {
		return h, nil, false, nil
	}
	s.offset += frameBytes(h.length)
	return h, payload, true, nil
}

// peek is the head at the present offset.
func (s *scan) peek() (h head, ok bool, err error) {
	if s.size-s.offset < headBytes {
		return h, false, nil
	}
	var p [headBytes]byte
	if err := s.read(p[:], s.offset); err != nil {
		return h, false, err
	}
	s.at.offset = s.offset
	h, ok = parseHead(p[:], s.at)
	return h, ok && frameBytes(h.length) <= s.size-s.offset, nil
}

// read does not take the end of a file that became shorter for an error of the file system.
func (s *scan) read(p []byte, off int64) error {
	n, err := s.file.ReadAt(p, off)
	if errors.Is(err, io.EOF) {
		clear(p[n:])
		return nil
	}
	return err
}

// decisive is the first frame that tells whether the file counts; payloads are not looked at.
func (s *scan) decisive() (head, bool, error) {
	for {
		h, ok, err := s.peek()
		if err != nil {
			return h, false, err
		}
		if !ok {
			if h, ok, err = s.resync(func(head) bool { return true }); !ok || err != nil {
				return h, false, err
			}
		}
		if h.kind == kindComplete || h.kind == kindBatch || h.kind == kindClosed {
			return h, true, nil
		}
		s.offset += frameBytes(h.length)
	}
}

// resumed tells whether a file's first batch is there and its first frame was never written: see Log.resume.
func (s *scan) resumed() (b begin, counts bool, err error) {
	var first [headBytes + beginBytes]byte
	if err := s.read(first[:], 0); err != nil || first != [headBytes + beginBytes]byte{} {
		return b, false, err
	}
	behind := *s
	behind.offset = frameBytes(beginBytes)
	h, _, ok, err := behind.next()
	return begin{behind: h.sequence - 1}, ok && h.kind == kindBatch, err
}

// window is how much resync looks at at once.
const window = 1 << 20

// resync looks for the next frame that is wanted, and stops at it.
func (s *scan) resync(wanted func(h head) bool) (head, bool, error) {
	var magic [4]byte
	binary.LittleEndian.PutUint32(magic[:], frameMagic)
	p := make([]byte, max(0, min(window, s.size-s.offset)))
	for from := s.offset + grain; s.size-from >= headBytes; from += window {
		part := p[:min(window, s.size-from)]
		if err := s.read(part, from); err != nil {
			return head{}, false, err
		}
		for i := 0; i+len(magic) <= len(part); i += grain {
			if !bytes.Equal(part[i:i+len(magic)], magic[:]) {
				continue
			}
			if h, found, err := s.try(from+int64(i), wanted); found || err != nil {
				return h, found, err
			}
		}
	}
	s.offset = s.size
	return head{}, false, nil
}

// try stops at an offset if there is a whole frame that is wanted. Who forges heads does not make it hash more than the file twice.
func (s *scan) try(offset int64, wanted func(h head) bool) (head, bool, error) {
	s.offset = offset
	h, ok, err := s.peek()
	if !ok || err != nil || !wanted(h) || s.hashed > 2*s.size {
		return h, false, err
	}
	s.hashed += int64(h.length)
	_, _, whole, err := s.next()
	s.offset = offset
	return h, whole, err
}
