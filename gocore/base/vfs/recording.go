package vfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrUnrecorded: the recorder saw no such call.
var ErrUnrecorded = errors.New("not in the recording of the file system")

// Recorder is a file system that passes its calls on to another one, and keeps what those that read have answered. Another process gets the same answers from
// the recording. Calls that change something are passed on and not kept.
type Recorder struct {
	FS
	log *recording
}

// recording is what has been read.
type recording struct {
	mu    sync.Mutex
	Dirs  map[string][]string
	Infos map[string]Info
	Files map[string]*recordedFile
	Fails map[string]uint32 // by failKey: the errno
}

type recordedFile struct {
	Size   int64
	Pieces []recordedPiece // in the order in which they were read
}

// recordedPiece is a range that was read, or could not be.
type recordedPiece struct {
	From  int64
	Bytes []byte
	Zeros int64 // that were read behind Bytes
	Fails int64 // length of a range that could not be read
	Errno uint32
}

// end is the end of what was read.
func (p *recordedPiece) end() int64 { return p.From + int64(len(p.Bytes)) + p.Zeros }

// NewRecorder records calls to a file system.
func NewRecorder(fs FS) *Recorder {
	return &Recorder{fs, &recording{Dirs: map[string][]string{}, Infos: map[string]Info{}, Files: map[string]*recordedFile{}, Fails: map[string]uint32{}}}
}

// Bytes is the recording, for Replay.
func (r *Recorder) Bytes() []byte {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return r.log.encode()
}

func failKey(call, name string) string { return call + " " + name }

// fail keeps the error of a call, and returns it. What fails without an errno is not kept.
func (l *recording) fail(call, name string, err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.Fails[failKey(call, name)] = uint32(errno)
	}
	return err
}

func (r *Recorder) Stat(name string) (Info, error) {
	info, err := r.FS.Stat(name)
	if err != nil {
		return info, r.log.fail("stat", name, err)
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.Infos[name] = info
	return info, nil
}

func (r *Recorder) List(dir string) ([]string, error) {
	names, err := r.FS.List(dir)
	if err != nil {
		return nil, r.log.fail("list", dir, err)
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.Dirs[dir] = slices.Clone(names)
	return names, nil
}

func (r *Recorder) Open(name string, write, direct bool) (File, error) {
	file, err := r.FS.Open(name, write, direct)
	if err != nil {
		return nil, r.log.fail("open", name, err)
	}
	size, err := file.Size()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	of := r.log.Files[name]
	if of == nil {
		of = &recordedFile{}
		r.log.Files[name] = of
	}
	of.Size = max(of.Size, size)
	return &recorderFile{file, r.log, of}, nil
}

func (r *Recorder) HoldDir(dir string) (HeldDir, error) {
	held, err := r.FS.HoldDir(dir)
	if err != nil {
		return nil, r.log.fail("hold", dir, err)
	}
	return heldRecorder{&Recorder{held, r.log}, held}, nil
}

// heldRecorder is a Recorder of a directory that is held open.
type heldRecorder struct {
	*Recorder
	held HeldDir
}

func (h heldRecorder) Whereabouts() Whereabouts { return h.held.Whereabouts() }
func (h heldRecorder) Close() error             { return h.held.Close() }

type recorderFile struct {
	File
	log *recording
	of  *recordedFile
}

func (f *recorderFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	read := bytes.TrimRight(p[:n], "\x00")
	piece := recordedPiece{From: off, Bytes: slices.Clone(read), Zeros: int64(n - len(read))}
	var errno unix.Errno
	if errors.As(err, &errno) {
		piece.Fails, piece.Errno = int64(len(p)), uint32(errno)
	}
	f.of.Size = max(f.of.Size, off+int64(n))
	f.of.Pieces = append(f.of.Pieces, piece)
	return n, err
}

func (f *recorderFile) Size() (int64, error) {
	size, err := f.File.Size()
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.of.Size = max(f.of.Size, size)
	return size, err
}

// Replay is a file system that answers from a recording. Everything else fails: with ErrUnrecorded, or with EROFS what would change something. The file system
// refers to the bytes of the recording, which must stay as they are.
func Replay(recorded []byte) (FS, error) {
	log, err := decodeRecording(recorded)
	if err != nil {
		return nil, fmt.Errorf("the recording of a file system: %w", err)
	}
	for name, of := range log.Files {
		for _, p := range of.Pieces {
			if p.From < 0 || p.Zeros < 0 || p.Fails < 0 || of.Size < 0 || int64(len(p.Bytes)) > of.Size-p.From || p.Zeros > of.Size-p.From-int64(len(p.Bytes)) {
				return nil, fmt.Errorf("the recording of a file system: %s has a piece outside of it", name)
			}
		}
	}
	return replayed{log}, nil
}

type replayed struct{ log *recording }

// answer is the error that a call has had, or ErrUnrecorded if it was never made.
func (r replayed) answer(call, name string) error {
	if errno, ok := r.log.Fails[failKey(call, name)]; ok {
		return fmt.Errorf("%s %s: %w", call, name, unix.Errno(errno))
	}
	return fmt.Errorf("%s %s: %w", call, name, ErrUnrecorded)
}

func (r replayed) Stat(name string) (Info, error) {
	if info, ok := r.log.Infos[name]; ok {
		return info, nil
	}
	return Info{}, r.answer("stat", name)
}

func (r replayed) List(dir string) ([]string, error) {
	if names, ok := r.log.Dirs[dir]; ok {
		return slices.Clone(names), nil
	}
	return nil, r.answer("list", dir)
}

func (r replayed) Open(name string, write, _ bool) (File, error) {
	if of := r.log.Files[name]; of != nil && !write {
		return &replayedFile{name: name, of: of}, nil
	}
	return nil, r.answer("open", name)
}

func (r replayed) HoldDir(dir string) (HeldDir, error) {
	if err := r.answer("hold", dir); !errors.Is(err, ErrUnrecorded) {
		return nil, err
	}
	return ByName(r), nil
}

func (r replayed) MkdirAll(string) error                  { return unix.EROFS }
func (r replayed) Free(string) (int64, error)             { return 0, ErrUnrecorded }
func (r replayed) OpenScratch(string, bool) (File, error) { return nil, unix.EROFS }
func (r replayed) Create(string, bool) (File, error)      { return nil, unix.EROFS }
func (r replayed) Remove(string) error                    { return unix.EROFS }
func (r replayed) Lock(string) (Lock, error)              { return nil, unix.EROFS }
func (r replayed) SyncDir(string) error                   { return unix.EROFS }

// replayedFile is a file of a recording.
type replayedFile struct {
	name string
	of   *recordedFile
}

// ReadAt finds the bytes in the pieces that were read, the latest first.
func (f *replayedFile) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		piece := f.find(at)
		switch {
		case piece == nil && at >= f.of.Size:
			return n, io.EOF
		case piece == nil:
			return n, fmt.Errorf("read %s at %d: %w", f.name, at, ErrUnrecorded)
		case at >= piece.end():
			return n, fmt.Errorf("read %s at %d: %w", f.name, at, unix.Errno(piece.Errno))
		case at >= piece.From+int64(len(piece.Bytes)):
			zeros := p[n:min(int64(len(p)), int64(n)+piece.end()-at)]
			clear(zeros)
			n += len(zeros)
		default:
			n += copy(p[n:], piece.Bytes[at-piece.From:])
		}
	}
	return n, nil
}

// find returns the latest piece that has a byte, or else one of those that could not be read; nil: it was not asked for.
func (f *replayedFile) find(at int64) (failed *recordedPiece) {
	for i := len(f.of.Pieces) - 1; i >= 0; i-- {
		p := &f.of.Pieces[i]
		switch {
		case at < p.From:
		case at < p.end():
			return p
		case at < p.From+p.Fails && failed == nil:
			failed = p
		}
	}
	return failed
}

func (f *replayedFile) WriteAt([]byte, int64) (int, error) { return 0, unix.EROFS }
func (f *replayedFile) Allocate(int64, int64) error        { return unix.EROFS }
func (f *replayedFile) PunchHole(int64, int64) error       { return unix.EROFS }
func (f *replayedFile) Size() (int64, error)               { return f.of.Size, nil }
func (f *replayedFile) Truncate(int64) error               { return unix.EROFS }
func (f *replayedFile) Sync() error                        { return unix.EROFS }
func (f *replayedFile) Close() error                       { return nil }
func (f *replayedFile) Direct() bool                       { return false }
func (f *replayedFile) Align() int                         { return 1 }
