package durable

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"velocpy/gocore/base/vfs"
)

// disturbance is an action of another process on a store's directory while the store is open.
type disturbance struct {
	name       string
	strike     func(d *disturbed) error
	filesAlone bool // directories cannot be locked
}

// disturbed is a player whose directory is disturbed before one of its calls.
type disturbed struct {
	p     *player
	disk  *vfs.Mem
	other map[string]string // files of the store that takes the directory's name
	moved bool
	taken bool // by a process that locked a new lock file, where directories cannot be locked
}

const (
	movedTo    = "/moved"
	otherStore = "/other"
)

var disturbances = []disturbance{
	{name: "renamed", strike: func(d *disturbed) error { return d.move() }},
	{name: "replaced", strike: func(d *disturbed) error { return errors.Join(d.move(), d.disk.Rename(otherStore, dir)) }},
	{name: "renamed and back", strike: func(d *disturbed) error {
		return errors.Join(d.disk.Rename(dir, movedTo), d.disk.Rename(movedTo, dir))
	}},
	{name: "lock removed", strike: func(d *disturbed) error { return d.removeLock() }},
	{name: "lock replaced", strike: func(d *disturbed) error {
		err := d.removeLock()
		d.disk.PutFile(filepath.Join(dir, lockName))
		return err
	}},
	{name: "a second writer", strike: func(d *disturbed) error {
		if err := d.removeLock(); err != nil {
			return err
		}
		if _, err := Open(d.p.options(d.disk)); !errors.Is(err, ErrLocked) {
			return fmt.Errorf("a second writer: %w", err)
		}
		return nil
	}},
	{name: "taken over", filesAlone: true, strike: func(d *disturbed) error {
		if err := d.removeLock(); err != nil {
			return err
		}
		second, err := Open(d.p.options(d.disk))
		if err != nil {
			return err
		}
		d.taken = true
		return second.Close()
	}},
}

func (d *disturbed) move() error {
	err := d.disk.Rename(dir, movedTo)
	if err == nil {
		d.moved, d.p.at = true, movedTo
	}
	return err
}

func (d *disturbed) removeLock() error { return d.disk.Remove(filepath.Join(dir, lockName)) }

// contentsOf returns the files of a directory.
func contentsOf(t *testing.T, m *vfs.Mem, at string) map[string]string {
	t.Helper()
	names, err := m.List(at)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		f, err := m.Open(filepath.Join(at, name), false, false)
		if err != nil {
			t.Fatal(err)
		}
		size, err := f.Size()
		if err != nil {
			t.Fatal(err)
		}
		p := make([]byte, size)
		if _, err := f.ReadAt(p, 0); err != nil {
			t.Fatal(err)
		}
		all[name] = string(p)
		_ = f.Close()
	}
	return all
}

// The directory's name or the lock file may change before any call of the writer. Acknowledged checkpoints are in the directory that was opened, and the
// directory that has its name now is not touched. A writer whose directory was taken over stops with ErrLost.
func TestDirectoriesThatMove(t *testing.T) {
	var points atomic.Int64
	watch(t, &points)
	first, stride := 1, 1
	if tenth() {
		first, stride = 1+int(turn()%7), 7
	}
	for _, s := range scenarios {
		for _, what := range disturbances {
			for at := first; ; at += stride {
				struck, err := disturb(t, s, what, at)
				if err != nil {
					t.Fatalf("%s, %s before call %d: %v", s.name, what.name, at, err)
				}
				if !struck {
					break
				}
				points.Inc()
			}
		}
	}
	t.Logf("%d points", points.Load())
	if points.Load() < 100 {
		t.Errorf("only %d points", points.Load())
	}
}

// disturb plays a scenario and strikes before a call of the writer, once the directory is open; false: the writer makes fewer calls.
func disturb(t *testing.T, s scenario, what disturbance, at int) (struck bool, err error) {
	d := &disturbed{}
	calls := 0
	var mu sync.Mutex
	d.p = newPlayer(1, func(disk *vfs.Mem) vfs.FS {
		d.disk = disk
		return &stepped{vfs.NewFaulty(disk, d.p.trouble), func(step) error {
			mu.Lock() // syncs run concurrently
			defer mu.Unlock()
			if d.p.d == nil || d.p.gone || struck {
				return nil
			}
			if calls++; calls < at {
				return nil
			}
			struck = true
			return what.strike(d)
		}}
	})
	d.other = d.makeOther(t)
	d.p.mem.FilesAlone = what.filesAlone
	s.play(d.p, false)
	return struck, d.look(t)
}

// makeOther makes another store, with one checkpoint.
func (d *disturbed) makeOther(t *testing.T) map[string]string {
	t.Helper()
	q := newPlayer(99, func(m *vfs.Mem) vfs.FS { return m })
	q.mem, q.at = d.p.mem, otherStore
	if !q.open() || !q.commit(q.put("another's", q.key(1), 5000)) || !q.close() || q.wrong != nil {
		t.Fatalf("the other store was not made: %v", q.wrong)
	}
	return contentsOf(t, d.p.mem, otherStore)
}

// look compares both stores with their expected content.
func (d *disturbed) look(t *testing.T) error {
	p := d.p
	p.close()
	if d.disk == nil {
		return p.wrong
	}
	other := otherStore
	if d.moved {
		if _, err := d.disk.Stat(otherStore); err != nil {
			other = dir
		}
	}
	if got := contentsOf(t, d.disk, other); !maps.Equal(got, d.other) {
		return fmt.Errorf("the other store was changed")
	}
	p.mu.Lock()
	allowed := p.allowed()
	p.mu.Unlock()
	if d.taken {
		return errors.Join(p.wrong, d.acknowledged(allowed))
	}
	_, err := recovered(p.options(d.disk), allowed)
	return errors.Join(p.wrong, err)
}

// acknowledged looks only for acknowledged checkpoints. For a moment the two writers did not know of each other, and one may have removed data files that
// the other was about to refer to.
func (d *disturbed) acknowledged(allowed []reference) error {
	view, err := Read(d.p.options(d.disk))
	if err != nil {
		return err
	}
	defer func() { _ = view.Close() }()
	got := shown(view.State())
	for at, v := range allowed[0].rows {
		may := slices.ContainsFunc(allowed, func(m reference) bool { return m.rows[at] == got.rows[at] })
		if !may {
			return fmt.Errorf("%v is %v, and was acknowledged as %v", at, got.rows[at], v)
		}
	}
	return errors.Join(view.Damage(), readable(view.contents, view.Space().Read, func(at slot, v version) bool { return allowed[0].rows[at] == v }))
}
