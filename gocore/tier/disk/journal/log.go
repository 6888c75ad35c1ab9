package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/base/vfs"
)

// Log is a log that is open for writing. Its methods are safe for concurrent use. The caller makes sure that no other process has the directory's log open
// for writing.
type Log struct {
	o Options

	mu      sync.Mutex
	closed  bool
	pending *batch // collects records; the first caller in finish writes it
	number  uint64 // of the newest file that may exist
	last    uint64 // the last acknowledged batch
	bytes   int64  // of the files that count
	files   int    // number of files that count
	filler  int64  // of bytes: padding of snapshot parts

	writing sync.Mutex // held during a write
	file    vfs.File   // nil: the next batch begins a new file
	offset  int64
	room    int64  // end of the preallocated room in the file
	cramped bool   // preallocation failed
	before  int64  // value of bytes before the file was created
	batched bool   // a whole frame of the current batch may be on disk
	found   *State // state that Read has found, until it is certainly on the medium; then nil
}

// batch is a set of records that are written together.
type batch struct {
	payload []byte
	counts  []func()
	done    chan struct{}
	err     error
}

// Open continues a log after the state that Read has found; an empty State begins one. It writes nothing. Only after Resume, or any successful write, is
// the content of a log that was not closed certainly on the medium. If State reports damage, the caller must call Compact first: a new file after a damaged
// one may change which of its batches count.
func Open(o Options, from *State) *Log {
	l := &Log{o: o, number: from.newest, last: from.Last, bytes: from.Bytes, files: from.Files, filler: from.filler, pending: &batch{done: make(chan struct{})}}
	//mutation:found-batch-not-rewritten
	if from.newest > 0 && !from.Closed {
		l.found = from
	}
	return l
}

// Append adds a record to the next batch and waits until it is on the medium. Then it calls counts, unless nil, before any later record counts and before a
// snapshot is taken. counts must be short, and must not call the log. After ErrNowhere the record is not in the log. After another error that is unknown
// until a later record is acknowledged: then it is not.
func (l *Log) Append(record []byte, counts func()) error {
	return l.AppendAll([][]byte{record}, counts)
}

// AppendAll adds records, in order, to one batch: after a crash all of them are there or none.
func (l *Log) AppendAll(records [][]byte, counts func()) error {
	b, err := l.join(records, counts)
	if err != nil {
		return err
	}
	l.finish(b)
	return b.err
}

// finish makes sure that a batch is written. The first of its callers that gets the lock writes it for all of them: handing it to another goroutine would
// cost a single caller more than the write does.
func (l *Log) finish(b *batch) {
	l.writing.Lock()
	defer l.writing.Unlock()
	select {
	case <-b.done:
	default:
		l.writePending()
	}
}

// writePending writes the pending batch. The caller holds writing.
func (l *Log) writePending() {
	l.mu.Lock()
	b := l.pending
	l.pending = &batch{done: make(chan struct{})}
	l.mu.Unlock()
	defer close(b.done)
	b.err = errUnfinished
	b.err = l.commit(b)
}

// errUnfinished is the error of a batch whose writing goroutine has panicked.
var errUnfinished = errors.New("the batch was not written to its end")

// Bytes is the total length of the files that the next opener must read.
func (l *Log) Bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// Last is the number of the last acknowledged batch. Only the one appending goroutine may call it.
func (l *Log) Last() uint64 {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.last
}

// Files is the number of files that the next opener must read.
func (l *Log) Files() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files
}

// Said is Bytes without the padding of snapshot parts.
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

// commit writes a batch. If that fails, it retries once in a new file, so that the batch no longer counts in the old one. It removes a file that was
// created in vain. The caller holds writing.
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

// leave abandons the file. An error of closing does not matter, as no record in it is relied on any more.
func (l *Log) leave() {
	_ = l.file.Close()
	l.file = nil
}

// scrap abandons and removes a new file without acknowledged records. If the file stays, or reappears after a crash, it does no harm.
func (l *Log) scrap() {
	l.leave()
	_ = l.o.FS.Remove(l.o.path(l.number))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes = l.before
	l.files--
}

// begin creates the next file with its first frame and, if more is given, further content. It returns when the file and its name are on the medium.
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
	case complete: // the snapshot may be on the medium and complete for a reader
		l.leave()
	default:
		l.scrap()
	}
	return err
}

// Begin creates the first file of a new log, so that a later opener that finds no file knows that the log was lost.
func (l *Log) Begin() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.file != nil || l.found != nil {
		return l.resume()
	}
	return l.begin(begin{behind: l.last}, nil)
}

// Resume makes the found content of a log that was not closed durable. It must be called before anything relies on that content or overwrites bytes outside
// it.
func (l *Log) Resume() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.resume()
}

// resume begins a new file. The last batch may not be on the medium although the page cache shows it: its writer may have died before the sync, or the sync
// may have failed, and no further sync writes it. So the batch is written again, as the first of the new file. The file's first frame is written only after
// a sync of the batch, because from then on the batch no longer counts in older files.
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

// create creates the next file and makes it current.
func (l *Log) create() error {
	if l.number >= mostNumber {
		return ErrExhausted
	}
	file, err := l.o.FS.Create(l.o.path(l.number+1), false)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %w", ErrTaken, err) // a log creates each name once; batches written after the other process's file would replace that file's batches
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

// Newest fails when another process has begun a file of the log, or has removed the current one.
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

// Compact restarts the log from a snapshot. f must give the records of the whole current state and no others; empty records are skipped. A nil record ends
// a part: later records share no block of the medium with earlier ones. Appends wait meanwhile. Older files are removed. After an error the log has its
// earlier content; files that could not be removed do not count.
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
		// After an incomplete file, only a new file may follow.
		l.mu.Lock()
		l.bytes = bytes
		l.mu.Unlock()
		return errors.Join(err, closeFile(before))
	}
	if err := l.o.owns(); err != nil {
		// The other process has begun its file after the older ones, without this one, or has read this one, which has the same content.
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

// Close ends the log, with a closed frame after the appended records.
func (l *Log) Close() error { return l.end(true) }

// Leave ends the log without a closed frame: its reader must look for later records elsewhere.
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
		return closeFile(l.file) // another process owns the directory; the caller's own check reports that
	}
	l.giveRoomBack()
	var err error
	if said {
		err = l.put(kindClosed, l.last, nil)
	}
	return errors.Join(err, closeFile(l.file))
}
