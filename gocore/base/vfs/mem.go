package vfs

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// memChunk is the unit in which a Mem allocates its capacity.
const memChunk = 64 << 10

// Mem is a disk in memory, for tests. It runs out of space like a real one, and refuses direct I/O that is not aligned to DefaultAlign. Crash shows
// its possible state after a power loss. Memory is used only for written data.
type Mem struct {
	mu       sync.Mutex
	capacity int64
	used     int64
	open     int
	root     *memDir
	memFS    // of the root

	// FilesAlone: a lock is only on the file, not also on the directory, as on some network file systems.
	FilesAlone bool
}

// memFS looks names up from the root of a Mem, or in a directory that is held open.
type memFS struct {
	m    *Mem
	held *memDir // nil: the root
	name string  // of the held directory
}

// memDir is a directory: its names refer to *memDir and *memNode.
type memDir struct {
	live, stable map[string]any
	locked       bool
	unsynced     []change // since the last SyncDir, in order
}

// change is a change of a name: its new target, or nil if it was removed.
type change struct {
	name string
	to   any
}

func newMemDir() *memDir { return &memDir{live: map[string]any{}, stable: map[string]any{}} }

func (d *memDir) set(name string, to any) {
	if to == nil {
		delete(d.live, name)
	} else {
		d.live[name] = to
	}
	d.unsynced = append(d.unsynced, change{name, to})
}

// NewMem returns an empty file system that holds capacity bytes, in units of 64 KiB. The root directory exists.
func NewMem(capacity int64) *Mem {
	m := &Mem{capacity: capacity, root: newMemDir()}
	m.memFS = memFS{m: m}
	return m
}

// Rename gives a file or directory another name, and replaces the file of that name. No crash undoes it.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, last, err := m.parent("rename", from)
	if err != nil {
		return err
	}
	what, ok := old.live[last]
	if !ok {
		return &fs.PathError{Op: "rename", Path: from, Err: unix.ENOENT}
	}
	dir, name, err := m.parent("rename", to)
	if err != nil {
		return err
	}
	if node, ok := dir.live[name].(*memNode); ok {
		node.unlink()
	}
	delete(old.live, last)
	delete(old.stable, last)
	dir.live[name], dir.stable[name] = what, what
	return nil
}

// PutFile makes name an ordinary file, so that a test can have one where it expects a directory.
func (m *Mem) PutFile(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if dir, last, err := m.parent("put", name); err == nil {
		dir.set(last, newMemNode(m))
	}
}

// OpenFiles returns the number of files not closed yet: 0 if nothing leaks.
func (m *Mem) OpenFiles() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// parts are the components of a path; none for the root.
func parts(name string) []string {
	return strings.FieldsFunc(filepath.Clean("/"+name), func(r rune) bool { return r == '/' })
}

// way is the directory where the lookup of a name begins, and the names from there on.
func (v memFS) way(op, name string) (from *memDir, names []string, err error) {
	if v.held == nil {
		return v.m.root, parts(name), nil
	}
	names, err = within(v.name, name)
	if err != nil {
		return nil, nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return v.held, names, nil
}

// find returns the target of a name: a *memDir or a *memNode. The caller holds the lock.
func (v memFS) find(op, name string) (any, error) {
	from, names, err := v.way(op, name)
	if err != nil {
		return nil, err
	}
	var at any = from
	for _, part := range names {
		dir, ok := at.(*memDir)
		if !ok {
			return nil, &fs.PathError{Op: op, Path: name, Err: unix.ENOTDIR}
		}
		if at, ok = dir.live[part]; !ok {
			return nil, &fs.PathError{Op: op, Path: name, Err: unix.ENOENT}
		}
	}
	return at, nil
}

func (v memFS) dir(op, name string) (*memDir, error) {
	at, err := v.find(op, name)
	if err != nil {
		return nil, err
	}
	dir, ok := at.(*memDir)
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: unix.ENOTDIR}
	}
	return dir, nil
}

func (v memFS) parent(op, name string) (*memDir, string, error) {
	from, names, err := v.way(op, name)
	if err != nil {
		return nil, "", err
	}
	if len(names) == 0 {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: unix.EISDIR}
	}
	last := len(names) - 1
	for _, part := range names[:last] {
		next, ok := from.live[part]
		if !ok {
			return nil, "", &fs.PathError{Op: op, Path: name, Err: unix.ENOENT}
		}
		if from, ok = next.(*memDir); !ok {
			return nil, "", &fs.PathError{Op: op, Path: name, Err: unix.ENOTDIR}
		}
	}
	return from, names[last], nil
}

// MkdirAll implements FS.
func (v memFS) MkdirAll(dir string) error {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	at, names, err := v.way("mkdir", dir)
	if err != nil {
		return err
	}
	for _, part := range names {
		next, ok := at.live[part]
		if !ok {
			next = newMemDir()
			at.set(part, next)
		}
		if at, ok = next.(*memDir); !ok {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: unix.ENOTDIR}
		}
	}
	return nil
}

// Stat implements FS.
func (v memFS) Stat(name string) (Info, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	at, err := v.find("stat", name)
	if err != nil {
		return Info{}, err
	}
	if node, ok := at.(*memNode); ok {
		return Info{Size: node.size, Held: int64(len(node.chunks)) * memChunk}, nil
	}
	return Info{Dir: true}, nil
}

// Free implements FS.
func (v memFS) Free(dir string) (int64, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	if _, err := v.find("statfs", dir); err != nil {
		return 0, err
	}
	return v.m.capacity - v.m.used, nil
}

// OpenScratch implements FS.
func (v memFS) OpenScratch(dir string, direct bool) (File, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	if _, err := v.dir("open", dir); err != nil {
		return nil, err
	}
	return v.opened(newMemNode(v.m), true, direct), nil
}

// Create implements FS.
func (v memFS) Create(name string, direct bool) (File, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	dir, last, err := v.parent("create", name)
	if err != nil {
		return nil, err
	}
	if _, ok := dir.live[last]; ok {
		return nil, &fs.PathError{Op: "create", Path: name, Err: unix.EEXIST}
	}
	node := newMemNode(v.m)
	node.links, node.named = 1, true
	dir.set(last, node)
	return v.opened(node, true, direct), nil
}

// Open implements FS.
func (v memFS) Open(name string, write, direct bool) (File, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	at, err := v.find("open", name)
	if err != nil {
		return nil, err
	}
	node, ok := at.(*memNode)
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotFile}
	}
	return v.opened(node, write, direct), nil
}

func (v memFS) opened(node *memNode, write, direct bool) *memFile {
	v.m.open++
	node.links++
	return &memFile{node: node, write: write, direct: direct}
}

// Remove implements FS.
func (v memFS) Remove(name string) error {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	dir, last, err := v.parent("remove", name)
	if err != nil {
		return err
	}
	switch node := dir.live[last].(type) {
	case *memNode:
		dir.set(last, nil)
		node.unlink()
		return nil
	case *memDir:
		return &fs.PathError{Op: "remove", Path: name, Err: unix.EISDIR}
	}
	return &fs.PathError{Op: "remove", Path: name, Err: unix.ENOENT}
}

// List implements FS.
func (v memFS) List(dir string) ([]string, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	at, err := v.dir("list", dir)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(at.live)), nil
}

// Lock implements FS. The result of Crash has no locks.
func (v memFS) Lock(name string) (Lock, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	dir, last, err := v.parent("lock", name)
	if err != nil {
		return nil, err
	}
	at, ok := dir.live[last]
	if !ok {
		node := newMemNode(v.m)
		node.links, node.named = 1, true
		dir.set(last, node)
		at = node
	}
	node, ok := at.(*memNode)
	switch {
	case !ok:
		return nil, &fs.PathError{Op: "lock", Path: name, Err: ErrNotFile}
	case node.locked, dir.locked && !v.m.FilesAlone:
		return nil, ErrTaken
	}
	node.locked, dir.locked = true, true
	return &memLock{node, dir, last}, nil
}

type memLock struct {
	node *memNode
	dir  *memDir
	name string
}

func (l *memLock) Held() error {
	l.node.disk.mu.Lock()
	defer l.node.disk.mu.Unlock()
	switch at, ok := l.dir.live[l.name]; {
	case !ok:
		return fmt.Errorf("%s: %w: %w", l.name, ErrLockLost, unix.ENOENT)
	case at != any(l.node):
		return fmt.Errorf("%s: %w", l.name, ErrLockLost)
	}
	return nil
}

// Renew implements Lock.
func (l *memLock) Renew() error {
	l.node.disk.mu.Lock()
	defer l.node.disk.mu.Unlock()
	node, ok := l.dir.live[l.name].(*memNode)
	switch {
	case !ok:
		node = newMemNode(l.node.disk)
		node.links, node.named = 1, true
		l.dir.set(l.name, node)
	case node.locked && node != l.node:
		return ErrTaken
	}
	l.node.locked = false
	node.locked, l.node = true, node
	return nil
}

func (l *memLock) Close() error {
	l.node.disk.mu.Lock()
	defer l.node.disk.mu.Unlock()
	l.node.locked, l.dir.locked = false, false
	return nil
}

// SyncDir implements FS.
func (v memFS) SyncDir(dir string) error {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	at, err := v.dir("sync", dir)
	if err != nil {
		return fmt.Errorf("sync of a directory: %w", err)
	}
	at.stable, at.unsynced = maps.Clone(at.live), nil
	return nil
}

// HoldDir implements FS.
func (v memFS) HoldDir(dir string) (HeldDir, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	at, err := v.dir("open", dir)
	if err != nil {
		return nil, err
	}
	return &memHeld{memFS{v.m, at, dir}}, nil
}

type memHeld struct{ memFS }

// Whereabouts implements HeldDir.
func (h *memHeld) Whereabouts() Whereabouts {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if at, err := (memFS{m: h.m}).find("stat", h.name); err == nil && at == any(h.held) {
		return InPlace
	}
	if h.m.root.holds(h.held) {
		return Moved
	}
	return Removed
}

// holds tells whether a directory is this one or below it.
func (d *memDir) holds(other *memDir) bool {
	if d == other {
		return true
	}
	for _, at := range d.live {
		if below, ok := at.(*memDir); ok && below.holds(other) {
			return true
		}
	}
	return false
}

// Close implements HeldDir.
func (h *memHeld) Close() error { return nil }
