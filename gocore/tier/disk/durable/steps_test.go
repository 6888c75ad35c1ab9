package durable

import (
	"strings"

	"velocpy/gocore/base/vfs"
)

// stepped calls before ahead of every file-system call. After an error it skips the call; a write may still write its beginning.
type stepped struct {
	vfs.FS
	before func(step step) error
}

type step struct {
	op    vfs.Op
	data  bool // of a data file
	write func(n int)
	bytes int
}

func (s *stepped) MkdirAll(dir string) error {
	if err := s.before(step{op: vfs.OpMkdir}); err != nil {
		return err
	}
	return s.FS.MkdirAll(dir)
}

func (s *stepped) Stat(name string) (vfs.Info, error) {
	if err := s.before(step{op: vfs.OpStat}); err != nil {
		return vfs.Info{}, err
	}
	return s.FS.Stat(name)
}

func (s *stepped) OpenScratch(dir string, direct bool) (vfs.File, error) {
	if err := s.before(step{op: vfs.OpOpen}); err != nil {
		return nil, err
	}
	return s.FS.OpenScratch(dir, direct)
}

func (s *stepped) Create(name string, direct bool) (vfs.File, error) {
	if err := s.before(step{op: vfs.OpOpen}); err != nil {
		return nil, err
	}
	return s.file(name)(s.FS.Create(name, direct))
}

func (s *stepped) Open(name string, write, direct bool) (vfs.File, error) {
	if err := s.before(step{op: vfs.OpOpen}); err != nil {
		return nil, err
	}
	return s.file(name)(s.FS.Open(name, write, direct))
}

func (s *stepped) file(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err != nil {
			return nil, err
		}
		return &steppedFile{f, s, strings.Contains(name, "/data-")}, nil
	}
}

func (s *stepped) Remove(name string) error {
	if err := s.before(step{op: vfs.OpRemove}); err != nil {
		return err
	}
	return s.FS.Remove(name)
}

func (s *stepped) List(dir string) ([]string, error) {
	if err := s.before(step{op: vfs.OpList}); err != nil {
		return nil, err
	}
	return s.FS.List(dir)
}

func (s *stepped) HoldDir(dir string) (vfs.HeldDir, error) {
	if err := s.before(step{op: vfs.OpHold}); err != nil {
		return nil, err
	}
	held, err := s.FS.HoldDir(dir)
	if err != nil {
		return nil, err
	}
	return &steppedDir{stepped{held, s.before}, held}, nil
}

type steppedDir struct {
	stepped
	dir vfs.HeldDir
}

func (s *steppedDir) Whereabouts() vfs.Whereabouts { return s.dir.Whereabouts() }
func (s *steppedDir) Close() error                 { return s.dir.Close() }

func (s *stepped) Lock(name string) (vfs.Lock, error) {
	if err := s.before(step{op: vfs.OpLock}); err != nil {
		return nil, err
	}
	return s.FS.Lock(name)
}

func (s *stepped) SyncDir(dir string) error {
	if err := s.before(step{op: vfs.OpSyncDir}); err != nil {
		return err
	}
	return s.FS.SyncDir(dir)
}

type steppedFile struct {
	vfs.File
	fs   *stepped
	data bool
}

func (f *steppedFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.fs.before(step{op: vfs.OpRead, data: f.data}); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *steppedFile) WriteAt(p []byte, off int64) (int, error) {
	begin := func(n int) { _, _ = f.File.WriteAt(p[:min(n, len(p))], off) }
	if err := f.fs.before(step{op: vfs.OpWrite, data: f.data, write: begin, bytes: len(p)}); err != nil {
		return 0, err
	}
	return f.File.WriteAt(p, off)
}

func (f *steppedFile) Allocate(off, n int64) error {
	if err := f.fs.before(step{op: vfs.OpAllocate, data: f.data}); err != nil {
		return err
	}
	return f.File.Allocate(off, n)
}

func (f *steppedFile) Size() (int64, error) {
	if err := f.fs.before(step{op: vfs.OpSize, data: f.data}); err != nil {
		return 0, err
	}
	return f.File.Size()
}

func (f *steppedFile) Sync() error {
	if err := f.fs.before(step{op: vfs.OpSync, data: f.data}); err != nil {
		return err
	}
	return f.File.Sync()
}
