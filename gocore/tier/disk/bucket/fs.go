package bucket

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/journal"
	"velocpy/gocore/tier/disk/segment"
)

// FS is an image as a directory with a store, which is read from there: the identity, the files of the catalog, and the packs as data files. It refuses all
// changes with EROFS.
type FS struct {
	image *Image
	files map[string]content
	names []string // sorted
}

// content is a file of the directory.
type content struct {
	bytes []byte // of the identity and the catalog
	pack  *Pack  // nil: bytes has the content
}

func (c content) size() int64 {
	if c.pack != nil {
		return c.pack.Bytes
	}
	return int64(len(c.bytes))
}

// FS returns the image as a directory.
func (i *Image) FS() *FS {
	f := &FS{image: i, files: map[string]content{identityAt: {bytes: i.identity}}}
	for _, x := range i.files {
		f.files[journal.FileName(x.number)] = content{bytes: x.bytes}
	}
	for k := range i.packs {
		f.files[segment.FileName(i.packs[k].Number)] = content{pack: &i.packs[k]}
	}
	for name := range f.files {
		f.names = append(f.names, name)
	}
	slices.Sort(f.names)
	return f
}

func (f *FS) find(name string) (content, error) {
	found, ok := f.files[filepath.Base(name)]
	if !ok {
		return content{}, fmt.Errorf("%s: %w", name, unix.ENOENT)
	}
	return found, nil
}

func refused(name string) error {
	return fmt.Errorf("%s is read from a bucket: %w", name, unix.EROFS)
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string) error { return refused(dir) }

// Stat implements vfs.FS.
func (f *FS) Stat(name string) (vfs.Info, error) {
	found, err := f.find(name)
	if err != nil {
		return vfs.Info{}, err
	}
	return vfs.Info{Size: found.size(), Held: found.size()}, nil
}

// Free implements vfs.FS.
func (f *FS) Free(string) (int64, error) { return 0, nil }

// OpenScratch implements vfs.FS.
func (f *FS) OpenScratch(dir string, _ bool) (vfs.File, error) { return nil, refused(dir) }

// Create implements vfs.FS.
func (f *FS) Create(name string, _ bool) (vfs.File, error) { return nil, refused(name) }

// Open implements vfs.FS.
func (f *FS) Open(name string, write, _ bool) (vfs.File, error) {
	if write {
		return nil, refused(name)
	}
	found, err := f.find(name)
	if err != nil {
		return nil, err
	}
	return &opened{content: found, at: f.image.at, name: name}, nil
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error { return refused(name) }

// List implements vfs.FS.
func (f *FS) List(string) ([]string, error) { return slices.Clone(f.names), nil }

// Lock implements vfs.FS.
func (f *FS) Lock(name string) (vfs.Lock, error) { return nil, refused(name) }

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(string) error { return nil }

// HoldDir implements vfs.FS.
func (f *FS) HoldDir(string) (vfs.HeldDir, error) { return f, nil }

// Whereabouts implements vfs.HeldDir.
func (f *FS) Whereabouts() vfs.Whereabouts { return vfs.InPlace }

// Close implements vfs.HeldDir.
func (f *FS) Close() error { return nil }

// pieceBytes is the length of the pieces of a large read. With shorter ones a server spends more time for requests than for bytes; with longer ones fewer are read at
// once.
const pieceBytes = 8 << 20

// PieceBytes implements vfs.Distant.
func (f *FS) PieceBytes() int64 { return pieceBytes }

// opened is a file that is open for reading.
type opened struct {
	content
	at     *Bucket
	name   string
	closed atomic.Bool
}

// ReadAt implements vfs.File: bytes of a pack are asked of the server.
func (o *opened) ReadAt(p []byte, off int64) (n int, err error) {
	rest := o.size() - off
	switch {
	case off < 0:
		return 0, fmt.Errorf("%s: %w", o.name, unix.EINVAL)
	case rest <= 0 && len(p) > 0:
		return 0, io.EOF
	}
	some := p[:min(int64(len(p)), max(rest, 0))]
	switch {
	case len(some) == 0:
	case o.pack == nil:
		n = copy(some, o.bytes[off:])
	default:
		if n, err = o.at.get(o.pack.key(), off, some); err == nil && n < len(some) {
			err = fmt.Errorf("%s: %w: its object is shorter: %w", o.name, ErrDamaged, io.ErrUnexpectedEOF)
		}
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// WriteAt implements vfs.File.
func (o *opened) WriteAt([]byte, int64) (int, error) { return 0, refused(o.name) }

// Allocate implements vfs.File.
func (o *opened) Allocate(int64, int64) error { return refused(o.name) }

// PunchHole implements vfs.File.
func (o *opened) PunchHole(int64, int64) error { return refused(o.name) }

// Size implements vfs.File.
func (o *opened) Size() (int64, error) { return o.size(), nil }

// Truncate implements vfs.File.
func (o *opened) Truncate(int64) error { return refused(o.name) }

// Sync implements vfs.File.
func (o *opened) Sync() error { return refused(o.name) }

// Close implements vfs.File.
func (o *opened) Close() error {
	if o.closed.Swap(true) {
		return fmt.Errorf("%s: %w", o.name, unix.EBADF)
	}
	return nil
}

// Direct implements vfs.File.
func (o *opened) Direct() bool { return false }

// Align implements vfs.File.
func (o *opened) Align() int { return 1 }
