package journal

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

// State is the result of Read, and the starting point of the next writer.
type State struct {
	Last   uint64 // the last batch that counts; 0: none
	Damage []Damage
	// Torn is the number of bytes after the last frame of the newest file. They were not acknowledged, unless damage hit the last batch, which looks the
	// same.
	Torn   int64
	Closed bool  // the log was closed after the last batch
	Bytes  int64 // of the files that count
	Files  int   // number of files that count
	// Shadowed: older files exist beside the snapshot that the log starts from, and the log was not closed. The snapshot's writer may have died before its
	// sync, so that the older files may count after all. The next writer must call Compact first.
	Shadowed bool
	newest   uint64 // file number
	end      int64  // end of that file's frames; 0: the file does not count, or its next bytes are not free room
	filler   int64  // of Bytes: padding of snapshot parts

	batch  []byte // payload of the last batch found
	number uint64 // its number; 0: it was synced, or there is none
}

// Read calls f for all records that count, in order: those of the snapshot, if there is one, then those of later batches. It changes nothing. Damaged or
// unreadable parts are skipped and reported in State. Read fails on an error of f or of the file system, and if nothing of the log can be read.
func Read(o Options, f func(record []byte) error) (*State, error) {
	r := &reader{o: o, f: f, state: &State{}}
	defer r.close()
	chain, err := r.chain()
	for tries := 0; errors.Is(err, unix.ENOENT) && tries < again; tries++ { // a writer has compacted the log meanwhile
		r.close()
		r.state, r.left = &State{}, nil
		chain, err = r.chain()
	}
	if err != nil {
		return nil, err
	}
	for i, file := range chain {
		r.state.Bytes += file.unused
		r.state.Files++
		limit := uint64(noLimit)
		if i+1 < len(chain) {
			//mutation:superseded-batch-counts
			limit = chain[i+1].begin.behind
		}
		if err := r.replay(file, limit); err != nil {
			return nil, err
		}
		file.scan.window = nil
	}
	if err := r.doubt(chain); err != nil {
		return nil, err
	}
	r.state.Shadowed = r.state.Shadowed && !r.state.Closed
	return r.state, nil
}

// again bounds the repeated listings of the files.
const again = 100

type reader struct {
	o     Options
	f     func(record []byte) error
	state *State
	files []vfs.File
	left  []opened // files that do not count, newest first
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
	begun  bool // the first frame is intact
	scan   scan
	end    int64 // end of the snapshot's parts; 0: there is none, or the end is unknown
	unused int64 // offset of the unused room; no frame begins after it
}

// chain returns the files that count, oldest first: those from the newest one with a complete snapshot on, or all.
func (r *reader) chain() ([]opened, error) {
	numbers, err := r.o.files()
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	r.state.newest = numbers[len(numbers)-1]
	var chain []opened
	defer func() { r.state.Shadowed = len(chain) > 0 && chain[0].number > numbers[0] }()
	for i := len(numbers) - 1; i >= 0; i-- {
		file, counts, err := r.look(numbers[i], i == 0)
		if err != nil {
			return nil, err
		}
		if !counts {
			r.left = append(r.left, file)
			continue
		}
		chain = append([]opened{file}, chain...)
		if file.begin.snapshot {
			break
		}
	}
	return chain, nil
}

// look tells whether a file counts. It does not if its first frame was never written, or if its snapshot is incomplete, as it has no acknowledged batch
// then. The frames after a damaged first frame replace its content. If both complete frames are lost, the absence of older files proves that the snapshot
// is complete: they are removed only then.
func (r *reader) look(number uint64, oldest bool) (file opened, counts bool, err error) {
	if file, err = r.open(number); err != nil {
		return file, false, err
	}
	s := file.scan
	h, payload, ok, err := s.next()
	if err != nil {
		return file, false, err
	}
	if file.begun = ok && h.kind == kindBegin; file.begun {
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
	v, err := s.verdict()
	if err != nil {
		return file, false, err
	}
	file.end = v.end
	switch {
	case v.found && file.begun:
	case v.found:
		r.damage(number, 0, 0, 0, r.why(&s, 0, frameBytes(beginBytes), "the file's first frame is damaged"), true) // the frames after it reveal its content
		file.begin = v.begin
	//mutation:snapshot-needs-complete-frame
	case oldest && v.parts && v.begin.behind > 0:
		r.damage(number, file.scan.size, 0, 0, "that the snapshot is complete is said nowhere any more", false)
		file.begin = v.begin
	default:
		return file, false, nil
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
	if err != nil {
		return opened{}, err
	}
	o := opened{number: number, scan: scan{source: &source{file: file, size: size}, at: place{store: r.o.Store, file: number}}}
	o.unused, err = o.scan.unusedFrom()
	return o, err
}

func (r *reader) damage(number uint64, offset int64, from, to uint64, why string, harmless bool) {
	r.state.Damage = append(r.state.Damage, Damage{File: fileName(number), Offset: offset, From: from, To: to, Why: why, Harmless: harmless})
}

// why returns the reason why a range has no complete frame.
func (r *reader) why(s *scan, from, end int64, damaged string) string {
	if err := s.failure(from, end); err != nil {
		return err.Error()
	}
	return damaged
}

// doubt reports the possible loss in the newest files that do not count because nothing in them is complete.
func (r *reader) doubt(chain []opened) error {
	for _, file := range r.left {
		s := &file.scan
		switch {
		case len(chain) > 0 && file.number < chain[len(chain)-1].number: // a newer file reveals missing batches
		case s.why != nil && len(chain) == 0:
			return fmt.Errorf("%s: nothing of it can be read: %w", r.o.path(file.number), s.why)
		case s.why != nil:
			r.damage(file.number, s.failed[0].from, r.state.Last+1, Unknown, r.why(s, 0, s.size, ""), false)
		case !file.begun:
			r.state.Torn += file.unused
		}
	}
	return nil
}

// noLimit is the limit of the newest file: all its batches count.
const noLimit = 1<<64 - 1

// replay gives the records of a file to f, up to limit, the last batch that counts in it according to the next file.
func (r *reader) replay(file opened, limit uint64) error {
	s := &file.scan
	if !file.begin.snapshot && r.state.Last < file.begin.behind {
		r.missing(file, 0, file.begin.behind, "no older file has them")
	}
	r.state.Last, r.state.Closed = max(r.state.Last, file.begin.behind), false
	r.state.number = 0 // the process that began this file had synced the last batch
	for r.state.Last < limit || file.begin.snapshot {
		at := s.offset
		h, payload, ok, err := s.next()
		switch {
		case err != nil:
			return err
		case ok && h.kind == kindBatch && h.sequence > limit, at >= file.unused && !ok && s.failure(at, s.size) == nil:
			if at < file.end {
				r.damage(file.number, at, 0, 0, "the file ends before its snapshot does", false)
			}
			r.missing(file, at, limit, "a frame is missing")
			r.ends(file, at)
			return nil
		case !ok:
			if again, err := r.past(s, file, at, limit); err != nil || !again {
				return err
			}
		default:
			if err := s.failure(at, s.offset); err != nil {
				r.damage(file.number, at, 0, 0, err.Error()+"; but its checksum tells that only zeroes stood there", true)
			}
			if done, err := r.frame(file, at, h, payload); done || err != nil {
				r.ends(file, s.offset)
				return err
			}
		}
	}
	return nil
}

// ends records the end of the newest file's frames.
func (r *reader) ends(file opened, at int64) {
	if file.number == r.state.newest {
		r.state.end = at
	}
}

// past skips bytes that are no frame. The next frame reveals which batches are missing. In the newest file, without a next frame, the bytes are the torn
// end of an unacknowledged batch. Unreadable bytes never count as torn, nor do bytes before the end of a snapshot.
func (r *reader) past(s *scan, file opened, at int64, limit uint64) (again bool, err error) {
	if skipped, err := s.unwritten(&file, at); skipped || err != nil {
		return skipped, err
	}
	h, found, err := s.resync(func(h head) bool {
		later := h.sequence > r.state.Last || h.kind == kindClosed && h.sequence == r.state.Last
		return h.kind == kindSnapshot || h.kind == kindComplete || h.kind >= kindBatch && later
	})
	if err != nil {
		return false, err
	}
	why := r.why(s, at, s.offset, "a frame is damaged")
	//mutation:snapshot-end-as-torn
	if !found && limit == noLimit && at >= file.end {
		r.ending(s, file, at, why)
		return false, nil
	}
	told, harmless := len(r.state.Damage), file.harmless(at, s.offset) || at >= file.end && h.kind == kindClosed
	if at < file.end && !harmless {
		r.damage(file.number, at, 0, 0, why, false)
	}
	switch {
	case !found:
		r.missing(file, at, limit, why)
		return false, nil
	case h.kind == kindBatch:
		r.missing(file, at, min(h.sequence-1, limit), why)
	case h.kind == kindClosed:
		r.missing(file, at, min(h.sequence, limit), why)
	}
	first := at == 0 && harmless && told > 0 // the fault of the first frame has been reported
	if len(r.state.Damage) == told && !first {
		r.damage(file.number, at, 0, 0, why, harmless)
	}
	return true, nil
}

// ending records the bytes after the last frame of the newest file.
func (r *reader) ending(s *scan, file opened, at int64, why string) {
	switch {
	case file.end > 0 && at == file.end && file.unused-at == completeBytes && s.failure(at+completeBytes, s.size) == nil: // the second complete frame is damaged
		r.damage(file.number, at, 0, 0, why, true)
	//mutation:unreadable-as-torn-end
	case s.failure(at, s.size) != nil:
		r.damage(file.number, at, r.state.Last+1, Unknown, why, false)
	default:
		r.state.Torn += file.unused - at
	}
}

// harmless tells whether a range without a complete frame has lost no record. Lost batches do not matter here, as their numbers reveal them.
func (o *opened) harmless(from, end int64) bool {
	switch {
	case !o.begin.snapshot:
		return end-from == headBytes || from == 0 && end == completeAt
	case end <= partsAt, o.end > 0 && from >= o.end:
		return true
	}
	return end-from == headBytes
}

// missing reports the batches up to a number as missing.
func (r *reader) missing(file opened, at int64, to uint64, why string) {
	//mutation:missing-batch-as-torn-end
	if to != noLimit && to > r.state.Last {
		r.damage(file.number, at, r.state.Last+1, to, why, false)
		r.state.Last = to
	}
}

func (r *reader) frame(file opened, at int64, h head, payload []byte) (done bool, err error) {
	f := r.f
	switch h.kind {
	case kindClosed:
		r.missing(file, at, h.sequence, "the log was closed behind them")
		r.state.Closed = true
		return true, nil
	case kindBatch:
		if h.sequence <= r.state.Last { // no writer does that
			r.damage(file.number, at, h.sequence, h.sequence, "another batch has its number", false)
			return false, nil
		}
		r.missing(file, at, h.sequence-1, "a frame is missing")
		r.state.Last, r.state.number = h.sequence, h.sequence
		r.state.batch = append(r.state.batch[:0], payload...)
	case kindSnapshot:
		if !file.begin.snapshot {
			r.damage(file.number, at, 0, 0, "a part of a snapshot where there is none", false)
			return false, nil
		}
		f = r.part
	default:
		return false, nil
	}
	whole, err := eachRecord(payload, f)
	if !whole {
		r.damage(file.number, at, h.sequence, h.sequence, "its records are not those that its length says", false)
	}
	return false, err
}

// part takes a record of a snapshot. Empty records are padding.
func (r *reader) part(record []byte) error {
	if len(record) == 0 {
		r.state.filler += RecordHead
		return nil
	}
	return r.f(record)
}
