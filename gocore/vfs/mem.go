package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// memChunk is the unit in which a Mem gives out its capacity.
const memChunk = 64 << 10

// Mem is a disk in memory, for tests: it runs out of space like a real one, refuses direct I/O that is not aligned to DefaultAlign, and
// Crash shows what a loss of power may leave of it. Memory is used only for what was written.
type Mem struct {
	mu       sync.Mutex
	capacity int64
	used     int64
	open     int
	root     *memDir
}

// memDir is a directory: its names stand for *memDir and *memNode.
type memDir struct {
	live, stable map[string]any
	unsynced     []change // since the last SyncDir, in their order
}

// change is one of a name: what it stands for from then on, or nil when it was removed.
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

// NewMem returns an empty file system that holds capacity bytes, in units of 64 KiB. The root
// directory exists.
func NewMem(capacity int64) *Mem { return &Mem{capacity: capacity, root: newMemDir()} }

// PutFile makes name an ordinary file, so that a test can meet one where it wants a directory.
func (m *Mem) PutFile(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if dir, last, err := m.parent("put", name); err == nil {
		dir.set(last, newMemNode(m))
	}
}

// OpenFiles returns the number of files not closed yet: 0 when nothing leaks.
func (m *Mem) OpenFiles() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open
}

// parts are the names on the way to a place; none for the root.
func parts(name string) []string {
	return strings.FieldsFunc(filepath.Clean("/"+name), func(r rune) bool { return r == '/' })
}

// find returns what a name stands for: a *memDir or a *memNode. The lock is held.
func (m *Mem) find(op, name string) (any, error) {
	var at any = m.root
	for _, part := range parts(name) {
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

func (m *Mem) dir(op, name string) (*memDir, error) {
	at, err := m.find(op, name)
	if err != nil {
		return nil, err
	}
	dir, ok := at.(*memDir)
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: unix.ENOTDIR}
	}
	return dir, nil
}

func (m *Mem) parent(op, name string) (*memDir, string, error) {
	all := parts(name)
	if len(all) == 0 {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: unix.EISDIR}
	}
	dir, err := m.dir(op, strings.Join(all[:len(all)-1], "/"))
	return dir, all[len(all)-1], err
}

// MkdirAll implements FS.
func (m *Mem) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.root
	for _, part := range parts(dir) {
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
func (m *Mem) Stat(name string) (Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.find("stat", name)
	if err != nil {
		return Info{}, err
	}
	if node, ok := at.(*memNode); ok {
		return Info{Size: node.size, Held: int64(len(node.chunks)) * memChunk}, nil
	}
	return Info{Dir: true}, nil
}

// Free implements FS.
func (m *Mem) Free(dir string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find("statfs", dir); err != nil {
		return 0, err
	}
	return m.capacity - m.used, nil
}

// OpenScratch implements FS.
func (m *Mem) OpenScratch(dir string, direct bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.dir("open", dir); err != nil {
		return nil, err
	}
	return m.opened(newMemNode(m), true, direct), nil
}

// Create implements FS.
func (m *Mem) Create(name string, direct bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, last, err := m.parent("create", name)
	if err != nil {
		return nil, err
	}
	if _, ok := dir.live[last]; ok {
		return nil, &fs.PathError{Op: "create", Path: name, Err: unix.EEXIST}
	}
	node := newMemNode(m)
	node.links, node.named = 1, true
	dir.set(last, node)
	return m.opened(node, true, direct), nil
}

// Open implements FS.
func (m *Mem) Open(name string, write, direct bool) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	node, ok := at.(*memNode)
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotFile}
	}
	return m.opened(node, write, direct), nil
}

func (m *Mem) opened(node *memNode, write, direct bool) *memFile {
	m.open++
	node.links++
	return &memFile{node: node, write: write, direct: direct}
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, last, err := m.parent("remove", name)
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
func (m *Mem) List(dir string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.dir("list", dir)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(at.live)), nil
}

// Lock implements FS. What Crash leaves is locked by nobody.
func (m *Mem) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, last, err := m.parent("lock", name)
	if err != nil {
		return nil, err
	}
	at, ok := dir.live[last]
	if !ok {
		node := newMemNode(m)
		node.links, node.named = 1, true
		dir.set(last, node)
		at = node
	}
	node, ok := at.(*memNode)
	switch {
	case !ok:
		return nil, &fs.PathError{Op: "lock", Path: name, Err: ErrNotFile}
	case node.locked:
		return nil, ErrTaken
	}
	node.locked = true
	return &memLock{node}, nil
}

type memLock struct{ node *memNode }

func (l *memLock) Close() error {
	l.node.disk.mu.Lock()
	defer l.node.disk.mu.Unlock()
	l.node.locked = false
	return nil
}

// SyncDir implements FS.
func (m *Mem) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.dir("sync", dir)
	if err != nil {
		return fmt.Errorf("sync of a directory: %w", err)
	}
	at.stable, at.unsynced = maps.Clone(at.live), nil
	return nil
}
