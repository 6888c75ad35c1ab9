package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/base/vfs"
)

// Log is a log that is open for writing. Its methods may be called from any goroutine. One process at a time has a directory's log open so: who opens it
// sees to that.
type Log struct {
	o Options

	mu      sync.Mutex
	closed  bool
	pending *batch // a record has been joined to it: then who joined one writes it
	number  uint64 // of the newest file there may be
	last    uint64 // the last batch acknowledged
	bytes   int64  // of the files that count
	files   int    // how many do
	filler  int64  // of these, bytes that fill up parts of the snapshot

	writing sync.Mutex // held while something is written
	file    vfs.File   // nil: the next batch begins a new one
	offset  int64
	room    int64  // how long the file has been made ahead
	cramped bool   // there was no room to be made ahead
	before  int64  // bytes, before the file was made
	batched bool   // a frame of the batch that is being written may lie somewhere as a whole
	found   *State // by whoever has opened the log, until that is on the medium for sure; nil: it is
}

// batch is records that are written together.
type batch struct {
	payload []byte
	counts  []func()
	done    chan struct{}
	err     error
}

// Open makes a log go on behind what Read has found; an empty State begins one. Nothing is written yet: what was found of a log that was not closed is on
// the medium for sure only when Resume, or anything that writes, has returned without an error. Where State tells of damage, Compact has to come before anything
// else: a file that is added behind what is broken may change what of it counts.
func Open(o Options, from *State) *Log {
	l := &Log{o: o, number: from.newest, last: from.Last, bytes: from.Bytes, files: from.Files, filler: from.filler, pending: &batch{done: make(chan struct{})}}
	//mutation:found-batch-not-rewritten
	if from.newest > 0 && !from.Closed {
		l.found = from
	}
	return l
}

// Append puts a record into the next batch and waits until that is on the medium. As soon as it is, counts is called, nil for nothing, before any later
// record counts and before a snapshot is taken: what it does must be short, and in it no call of the log. After ErrNowhere the record is not there. After
// another error nobody knows whether it is, until a later one has been acknowledged: then it is not.
func (l *Log) Append(record []byte, counts func()) error {
	return l.AppendAll([][]byte{record}, counts)
}

// AppendAll puts records, in their order, into one batch: after a crash either all of them are there or none.
func (l *Log) AppendAll(records [][]byte, counts func()) error {
	b, err := l.join(records, counts)
	if err != nil {
		return err
	}
	l.finish(b)
	return b.err
}

// finish sees to it that a batch is written. Of those who have joined it, the first one that may write writes it for all: handing it to another goroutine
// would cost a single caller more than the write does.
func (l *Log) finish(b *batch) {
	l.writing.Lock()
	defer l.writing.Unlock()
	select {
	case <-b.done:
	default:
		l.writePending()
	}
}

// writePending writes the pending batch. The lock of writing is held.
func (l *Log) writePending() {
	l.mu.Lock()
	b := l.pending
	l.pending = &batch{done: make(chan struct{})}
	l.mu.Unlock()
	defer close(b.done)
	b.err = errUnfinished
	b.err = l.commit(b)
}

// errUnfinished is the error of a batch whose writer has panicked.
var errUnfinished = errors.New("the batch was not written to its end")

// Bytes is how long the files are that whoever opens the log has to read.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Last is the number of the last batch that was acknowledged. Whoever asks is the only one that appends.
func (l *Log) Last() uint64 {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.last
}

// Files is how many files whoever opens the log has to read.
func (l *Log) Files() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files
}

// Said is Bytes without those that only fill up parts of a snapshot.
func (l *Log) Said() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes - l.filler
}

func (l *Log) join(records [][]byte, counts func()) (*batch, error) {
	size := 0
	for _, record := range records {
		if size += RecordHead + len(record); size > MostPayload {
			return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.closed && len(l.pending.payload)+size > MostPayload {
		b := l.pending
		l.mu.Unlock()
		l.finish(b)
		l.mu.Lock()
	}
	if l.closed {
		return nil, ErrClosed
	}
	b := l.pending
	for _, record := range records {
		b.payload = appendRecord(b.payload, record)
	}
	if counts != nil {
		b.counts = append(b.counts, counts)
	}
	return b, nil
}

// commit writes a batch. If that fails it is tried once more in a new file: what the old one holds of it does not count then. A file that was made in vain is
// removed. The lock of writing is held.
func (l *Log) commit(b *batch) error {
	l.batched = false
	if err := l.putSomewhere(b.payload); err != nil {
		if !l.batched {
			err = fmt.Errorf("%w: %w", ErrNowhere, err)
		}
		return err
	}
	l.last++
	for _, counts := range b.counts {
		counts()
	}
	return nil
}

func (l *Log) putSomewhere(payload []byte) error {
	if l.last >= mostNumber {
		return ErrExhausted
	}
	if err := l.resume(); err != nil {
		return err
	}
	if l.file != nil {
		if l.put(kindBatch, l.last+1, payload) == nil {
			return nil
		}
		l.leave()
	}
	if err := l.begin(begin{behind: l.last}, nil); err != nil {
		return err
	}
	err := l.put(kindBatch, l.last+1, payload)
	if err != nil {
		l.scrap()
	}
	return err
}

// put writes a frame at the end of the file, and syncs it.
func (l *Log) put(kind uint32, sequence uint64, payload []byte) error {
	if err := l.write(kind, sequence, payload); err != nil {
		return err
	}
	if kind == kindBatch {
		l.provide()
		killpoint.Pass(killpoint.BatchWritten)
	}
	//mutation:batch-sync-retried
	//mutation:catalog-sync-error-ignored
	err := l.file.Sync()
	if kind == kindBatch {
		killpoint.Pass(killpoint.BatchSynced)
	}
	return err
}

func (l *Log) write(kind uint32, sequence uint64, payload []byte) error {
	n, err := l.writeAt(l.offset, kind, sequence, payload)
	l.batched = l.batched || kind == kindBatch && n == frameBytes(uint64(len(payload)))
	if err != nil {
		return err
	}
	l.offset += n
	l.mu.Lock()
	l.bytes += n
	l.mu.Unlock()
	return nil
}

func (l *Log) writeAt(at int64, kind uint32, sequence uint64, payload []byte) (int64, error) {
	frame := appendFrame(make([]byte, 0, frameBytes(uint64(len(payload)))), place{l.o.Store, l.number, at}, kind, sequence, payload)
	n, err := l.file.WriteAt(frame, at)
	return int64(n), err
}

// leave gives a file up for good. Whatever closing it says, nobody relies on it any more.
func (l *Log) leave() {
	_ = l.file.Close()
	l.file = nil
}

// scrap gives up a file that was made in vain: nothing was acknowledged in it. Should it stay, or be there again after a crash, it does no harm.
func (l *Log) scrap() {
	l.leave()
	_ = l.o.FS.Remove(l.o.path(l.number))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes = l.before
	l.files--
}

// begin makes a new file the one that is written to, with what more it starts with, once it and its name are on the medium.
func (l *Log) begin(b begin, more func() error) error {
	if err := l.create(); err != nil {
		return err
	}
	err := l.write(kindBegin, 0, b.bytes())
	killpoint.Pass(killpoint.CatalogBegun)
	complete := false
	if err == nil && more != nil {
		err = more()
		complete = err == nil
	}
	if err == nil {
		//mutation:old-catalogs-removed-unsynced
		err = l.file.Sync()
	}
	//mutation:catalog-file-name-unsynced
	if err == nil {
		err = l.o.FS.SyncDir(l.o.Dir)
	}
	switch {
	case err == nil:
	case complete: // it may be on the medium, and be what a reader finds
		l.leave()
	default:
		l.scrap()
	}
	return err
}

// Begin makes the first file of a log of which there is none, so that who finds none later knows that it was lost.
func (l *Log) Begin() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.file != nil || l.found != nil {
		return l.resume()
	}
	return l.begin(begin{behind: l.last}, nil)
}

// Resume brings down what was found of a log that was not closed. Whoever relies on that, or writes over what it does not have, calls Resume before.
func (l *Log) Resume() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.resume()
}

// resume begins a new file. Whoever wrote the last batch may have died before it was synced, or its sync has failed, so that the system shows what is not on
// the medium, and no other sync brings it there: so the batch is written again, as the new file's first. The file's first frame is written only when the
// batch has been synced, as from then on the batch does not count in older files.
func (l *Log) resume() error {
	if l.found == nil {
		return nil
	}
	var err error
	if found := l.found; found.number == found.Last && found.Last > 0 {
		err = l.again(found.batch)
	} else {
		err = l.begin(begin{behind: l.last}, nil)
	}
	if err == nil {
		l.found = nil
	}
	return err
}

func (l *Log) again(batch []byte) error {
	if err := l.create(); err != nil {
		return err
	}
	l.offset = frameBytes(beginBytes)
	err := l.put(kindBatch, l.last, batch)
	end := l.offset
	if err == nil {
		l.offset = 0
		err = l.put(kindBegin, 0, begin{behind: l.last - 1}.bytes())
		l.offset = end
	}
	if err == nil {
		err = l.o.FS.SyncDir(l.o.Dir)
	}
	if err != nil {
		l.scrap()
	}
	return err
}

// create makes a new file the one that is written to.
func (l *Log) create() error {
	if l.number >= mostNumber {
		return ErrExhausted
	}
	file, err := l.o.FS.Create(l.o.path(l.number+1), false)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrTaken, err) // this log makes a name once: what it wrote behind that file would take the place of that file's batches
	}
	l.number++
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.before = l.bytes
	l.files++
	l.mu.Unlock()
	l.file, l.offset, l.room, l.cramped = file, 0, 0, false
	return nil
}

// Newest fails when another process has begun a file of the log, or has removed the one that is being written to.
func (l *Log) Newest() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	numbers, err := l.o.files()
	if err != nil {
		return err
	}
	if n := len(numbers); n == 0 || numbers[n-1] > l.number || l.file != nil && numbers[n-1] < l.number {
		return fmt.Errorf("%w: the newest file in %s is not %s", ErrTaken, l.o.Dir, fileName(l.number))
	}
	return nil
}

// Compact makes the log start anew from a snapshot: what f gives out must be the records of everything that counts, and of nothing else; empty ones are
// left out. Where it gives nil, a frame ends: what follows shares no block of the medium with what came before.
// Appends wait meanwhile. Older files are removed. After an error the log holds what it held; files that could not be removed do not count.
func (l *Log) Compact(f func(give func(record []byte) error) error) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	older, err := l.o.files()
	if err != nil {
		return err
	}
	before, bytes := l.file, l.Bytes()
	l.file = nil
	p := parts{log: l}
	err = l.begin(begin{behind: l.last, snapshot: true}, func() error { return l.snapshot(&p, f) })
	if err != nil {
		// Nothing goes behind a file that is not whole but a new one.
		l.mu.Lock()
		l.bytes = bytes
		l.mu.Unlock()
		return errors.Join(err, closeFile(before))
	}
	if err := l.o.owns(); err != nil {
		// The other process has begun its file behind the older ones, without this one, or has read this one and the older ones alike.
		l.leave()
		return errors.Join(err, l.o.FS.Remove(l.o.path(l.number)), closeFile(before))
	}
	l.found = nil
	l.mu.Lock()
	l.bytes, l.filler, l.files = l.offset, p.filler, 1
	l.mu.Unlock()
	killpoint.Pass(killpoint.SnapshotComplete)
	err = closeFile(before)
	for _, number := range older {
		err = errors.Join(err, l.o.FS.Remove(l.o.path(number)))
		killpoint.Pass(killpoint.OldFileRemoved)
	}
	return errors.Join(err, l.o.FS.SyncDir(l.o.Dir))
}

func closeFile(f vfs.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// Close ends the log behind what has been appended, and says so in it.
func (l *Log) Close() error { return l.end(true) }

// Leave ends the log behind what has been appended, and does not say so: whoever reads it has to look for more elsewhere.
func (l *Log) Leave() error { return l.end(false) }

func (l *Log) end(said bool) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	l.mu.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	if len(l.pending.payload) > 0 {
		l.writePending()
	}
	if l.file == nil {
		return nil
	}
	if l.o.owns() != nil {
		return closeFile(l.file) // nothing is written to a directory that is another process's; who asks next is told
	}
	l.giveRoomBack()
	var err error
	if said {
		err = l.put(kindClosed, l.last, nil)
	}
	return errors.Join(err, closeFile(l.file))
}
