package archive

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/disk/segment"
)

var (
	// ErrSent: a message is not what its sender has sent.
	ErrSent = errors.New("bytes were changed on their way between ranks")
	// ErrOtherArchive: on this node, the directory of the archive is not the one that the others write to.
	ErrOtherArchive = errors.New("not the archive that the other ranks push into: it must lie on storage that all nodes share")
	// ErrOtherStore: what lies under the path of a rank's store is another store.
	ErrOtherStore = errors.New("another store than that of the rank")
	errShare      = errors.New("not in this rank's share of the plan")
)

// Share is what one rank does for a push of all ranks: it reads stores of its node, and writes the files that it leads. Its methods are safe for concurrent use,
// except Begin, End and Close. The bytes of one copy are read in order.
type Share struct {
	stores map[int]durable.Options
	to     durable.Options
	bucket *bucketShare // nil: the archive is a directory
	rank   int
	ranks  map[int]*rank
	plan   *Plan
	files  map[int64]*ledFile

	mu      sync.Mutex
	reads   map[int]*reading // by number of the part: what this rank reads
	writing stopwatch
}

// stopwatch measures how long at least one of several writes is under way, and their bytes.
type stopwatch struct {
	active int
	began  time.Time
	passed time.Duration
	bytes  int64
}

// start begins a write.
func (w *stopwatch) start() {
	if w.active++; w.active == 1 {
		w.began = time.Now()
	}
}

// stop ends a write of so many bytes.
func (w *stopwatch) stop(bytes int64) {
	w.bytes += bytes
	if w.active--; w.active == 0 {
		w.passed += time.Since(w.began)
	}
}

// reading is a part that this rank reads.
type reading struct {
	part
	moved *PlannedPart
}

// ledFile is a file of the archive that this rank writes.
type ledFile struct {
	vfs.File
	written bool
	start   int64 // of its segment, in the space of the archive
}

// NewShare prepares the share of a rank. Sources are the stores that it can read: its own, and those of its node.
func NewShare(number int, stores []Source, to durable.Options) *Share {
	s := &Share{stores: map[int]durable.Options{}, to: to, rank: number, ranks: map[int]*rank{}, files: map[int64]*ledFile{}}
	for _, of := range stores {
		s.stores[of.Rank] = of.Store
	}
	return s
}

// Dir is the directory of the archive, or its place in a bucket.
func (s *Share) Dir() string { return s.to.Dir }

// Begin takes a plan. The files that the rank leads are there already.
func (s *Share) Begin(plan *Plan) error {
	s.plan, s.reads, s.writing = plan, map[int]*reading{}, stopwatch{}
	if s.bucket != nil {
		if err := s.bucket.recognize(plan.Store); err != nil {
			return err
		}
	}
	for _, led := range plan.Files {
		if led.Leader == s.rank {
			if err := s.open(led.File); err != nil {
				return fmt.Errorf("%s: %w", s.name(led.File), err)
			}
		}
	}
	for number := range plan.Parts {
		if m := &plan.Parts[number]; m.Reader == s.rank {
			r, err := s.find(m)
			if err != nil {
				return &RankError{m.Rank, s.stores[m.Rank].Dir, err}
			}
			s.reads[number] = r
		}
	}
	return nil
}

// name is the path of a file of the archive.
func (s *Share) name(number int64) string {
	return filepath.Join(s.to.Dir, segment.FileName(uint64(number)+1))
}

// open opens a file of the archive, and verifies by its head that it is the one that the plan means.
func (s *Share) open(number int64) error {
	if s.files[number] != nil {
		return nil
	}
	file, err := s.to.FS.Open(s.name(number), true, s.to.Direct)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return errors.Join(ErrOtherArchive, err)
	}
	if err != nil {
		return err
	}
	if err := s.own(file, number); err != nil {
		return errors.Join(err, file.Close())
	}
	s.files[number] = &ledFile{File: segment.Behind(file, s.plan.Front), start: number * s.plan.Bytes}
	return nil
}

// own verifies that a file is that of the plan.
func (s *Share) own(file vfs.File, number int64) (err error) {
	page, err := memory.Map(bufferPurpose, segment.HeadBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.Unmap()) }()
	p := page.Bytes(0, segment.HeadBytes)
	if _, err := file.ReadAt(p, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if head, _, ok := segment.ParseHead(p); !ok || head.Store != s.plan.Store || head.Number != uint64(number)+1 {
		return ErrOtherArchive
	}
	return nil
}

// find finds a part in its store.
func (s *Share) find(m *PlannedPart) (*reading, error) {
	of, err := s.opened(m.Rank)
	if err != nil {
		return nil, err
	}
	r := &reading{part: part{of: of}, moved: m}
	state := of.from.State()
	id, _ := state.History(string(m.History))
	row, ok := state.Find(id, m.key())
	if r.row, r.gone = row, !ok || row.Serial != m.Serial; r.gone || m.Known {
		return r, nil
	}
	if m.Plain {
		if r.seen = durable.NewStream(&row); r.seen == nil {
			return nil, errShare
		}
	}
	if row.Sums == nil {
		rooms, err := of.from.Rooms(&row)
		if err != nil {
			return nil, err
		}
		r.err = of.from.NamesStore(rooms)
	}
	return r, nil
}

// opened opens the store of a rank, once.
func (s *Share) opened(number int) (*rank, error) {
	if of := s.ranks[number]; of != nil {
		return of, nil
	}
	o, ok := s.stores[number]
	if !ok {
		return nil, errShare
	}
	view, err := durable.Read(o)
	if err != nil {
		return nil, err
	}
	of := &rank{number, view}
	s.ranks[number] = of
	if !slices.Contains(s.plan.Stores, StoreIdentity{number, view.About().Store}) {
		return nil, ErrOtherStore
	}
	return of, nil
}

// transfer is a copy of the plan that this rank reads, and where its bytes are.
func (s *Share) transfer(number int) (Transfer, *reading, error) {
	if s.plan == nil || number < 0 || number >= len(s.plan.Copies) {
		return Transfer{}, nil, errShare
	}
	c := s.plan.Copies[number]
	r := s.reads[c.Part]
	if r == nil {
		return Transfer{}, nil, errShare
	}
	return c, r, nil
}

// Read reads bytes of a copy, from an offset of it on, and returns their sum, for Write. sound is false if the part cannot be read, as End reports, and its bytes
// are not worth sending.
func (s *Share) Read(copy int, at int64, p []byte) (sum uint64, sound bool, err error) {
	c, r, err := s.transfer(copy)
	if err != nil {
		return 0, false, err
	}
	if at < 0 || int64(len(p)) > c.End-c.From-at {
		return 0, false, errShare
	}
	if !s.read(r, c.From+at, p) {
		return 0, false, nil
	}
	return xxh3.Hash(p), true, nil
}

// read reads bytes of a part, and notes if that fails.
func (s *Share) read(r *reading, off int64, p []byte) (sound bool) {
	s.mu.Lock()
	bad := r.gone || r.wrong || r.err != nil
	s.mu.Unlock()
	if bad {
		return false
	}
	space := r.of.from.Space()
	space.Grow(off + int64(len(p)))
	err := space.Read(off, p)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case vfs.Unreadable(err): // the medium has lost the bytes, and the other keys go on
		r.wrong = true
	case err != nil:
		r.err = err
	case r.seen != nil:
		r.seen.Take(p)
	}
	return err == nil
}

// Write writes bytes that a rank has read to their place in a file that this rank leads. p is aligned to a page, and whole blocks.
func (s *Share) Write(file, at int64, p []byte, sum uint64) error {
	if xxh3.Hash(p) != sum {
		return ErrSent
	}
	return s.write(file, at, p)
}

func (s *Share) write(number, at int64, p []byte) error {
	f := s.files[number]
	if f == nil || at < f.start || at+int64(len(p)) > f.start+segmentBytes {
		return errShare
	}
	s.mu.Lock()
	s.writing.start()
	s.mu.Unlock()
	_, err := f.WriteAt(p, at-f.start)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing.stop(int64(len(p)))
	if err != nil {
		return fmt.Errorf("%s: %w", s.name(number), err)
	}
	f.written = true
	return nil
}

// Copy copies bytes of a part that lies on the node of its leader, which is this rank: so many, from an offset of the copy on. Those of a plain part are copied in order.
func (s *Share) Copy(copy int, at, bytes int64) (err error) {
	c, r, err := s.transfer(copy)
	if err != nil {
		return err
	}
	if at < 0 || bytes <= 0 || bytes > c.End-c.From-at {
		return errShare
	}
	buffer, err := memory.Map(bufferPurpose, min(copyBytes, bytes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, buffer.Unmap()) }()
	for end := at + bytes; at < end; {
		p := buffer.Bytes(0, min(buffer.Size(), end-at))
		if !s.read(r, c.From+at, p) {
			return nil
		}
		if err := s.write(c.File, c.At+at, p); err != nil {
			return err
		}
		at += int64(len(p))
	}
	return nil
}

// End syncs what was written, and reports what came of the parts that this rank has read.
func (s *Share) End() (report Report, err error) {
	began := time.Now()
	for number, f := range s.files {
		if !f.written {
			continue
		}
		f.written = false
		if err := f.Sync(); err != nil {
			return report, fmt.Errorf("%s: %w", s.name(number), err)
		}
	}
	synced := time.Since(began)
	report = Report{Wrong: []int{}, Gone: []int{}, Failed: []Failed{}, Wrote: s.writing.bytes, Writing: s.writing.passed.Seconds(), Syncing: synced.Seconds()}
	for number, r := range s.reads {
		if r.seen != nil && !r.gone && r.err == nil && !r.seen.Sound() {
			r.wrong = true
		}
		if !r.gone {
			m := r.moved
			current, err := r.of.from.Current(string(m.History), m.key(), m.Serial)
			if r.gone = err == nil && !current; err != nil && r.err == nil {
				r.err = err
			}
		}
		switch {
		case r.gone:
			report.Gone = append(report.Gone, number)
		case r.wrong:
			report.Wrong = append(report.Wrong, number)
		case r.err != nil:
			report.Failed = append(report.Failed, Failed{number, r.err.Error()})
		}
	}
	slices.Sort(report.Wrong)
	slices.Sort(report.Gone)
	slices.SortFunc(report.Failed, func(a, b Failed) int { return a.Part - b.Part })
	if s.bucket != nil {
		s.bucket.tell(&report)
	}
	s.plan, s.reads = nil, nil
	return report, nil
}

// Close closes the stores and the files.
func (s *Share) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	for _, of := range s.ranks {
		errs = append(errs, of.from.Close())
	}
	s.files, s.ranks = nil, nil
	return errors.Join(errs...)
}
