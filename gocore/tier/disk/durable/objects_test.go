package durable

import (
	"errors"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
	"velocpy/gocore/tier/tiertest"
)

func TestObjects(t *testing.T) {
	tiertest.Test(t, func(t tiertest.TB, seed uint64) *tiertest.Tier {
		x, err := openObjects(vfs.NewMem(64<<20), rand.New(rand.NewPCG(seed, 2)))
		if err != nil {
			t.Fatalf("%v", err)
		}
		return x
	})
}

// openObjects opens a directory on a disk that may crash.
func openObjects(disk *vfs.Mem, r *rand.Rand) (*tiertest.Tier, error) {
	fs := vfs.NewFaulty(disk)
	o := small(fs)
	var broken []*vfs.Rule
	for number := range o.Capacity / o.SegmentBytes {
		broken = append(broken, fs.Add(&vfs.Rule{Ops: vfs.OpWrite, Name: segment.FileName(uint64(number) + 1), Err: unix.EIO}))
	}
	fail := func(on bool) {
		for _, r := range broken {
			if on {
				r.Enable()
			} else {
				r.Disable()
			}
		}
	}
	fail(false)
	d, err := Open(o)
	if err != nil {
		return nil, err
	}
	objects, err := d.Objects("objects")
	if err != nil {
		return nil, err
	}
	var view *View
	end := func() error {
		if view == nil {
			return nil
		}
		defer func() { view = nil }()
		return view.Close()
	}
	return &tiertest.Tier{
		Objects: objects, Room: o.Capacity, Most: 150_000, Fail: fail,
		Wrong: func(o tier.Object) tier.Object { o.Offset += segment.Block; return o },
		Crash: func() (*tiertest.Tier, error) {
			after := disk.Crash(r, []float64{0, 0.5, 1}[r.IntN(3)])
			next, err := openObjects(after, r)
			return next, errors.Join(err, end(), d.Close())
		},
		Other: func() (tier.Objects, error) {
			if err := end(); err != nil {
				return nil, err
			}
			v, err := Read(small(disk))
			if err != nil {
				return nil, err
			}
			view = v
			return v.Objects("objects")
		},
		Close: func() error { return errors.Join(end(), d.Close()) },
	}, nil
}

// putObject writes an object and commits it.
func putObject(t *testing.T, o *Objects, x tier.Object) {
	t.Helper()
	s, err := o.Create(x, nil)
	if err == nil {
		err = errors.Join(s.Write(0, pattern(x.Bytes, byte(x.ID))), s.Commit())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mustObjects(t *testing.T, d *Dir) *Objects {
	t.Helper()
	o, err := d.Objects("objects")
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// While an object is not durable, Sync says so.
func TestSyncTellsOfObjectsThatAreNotDurable(t *testing.T) {
	syncs := &vfs.Rule{Ops: vfs.OpSync, Name: segment.FileName(1), Err: unix.EIO, Times: 1}
	d := mustOpen(t, small(vfs.NewFaulty(vfs.NewMem(64<<20), syncs)))
	o := mustObjects(t, d)
	lost := tier.Object{ID: 1, Bytes: 5000}
	putObject(t, o, lost)
	for range 2 {
		if err := o.Sync(); !errors.Is(err, unix.EIO) {
			t.Errorf("the sync of the data has failed: %v", err)
		}
	}
	other := tier.Object{ID: 2, Offset: 64 << 10, Bytes: 5000}
	putObject(t, o, other)
	if err := o.Sync(); !errors.Is(err, unix.EIO) {
		t.Errorf("with another object: %v", err)
	}
	if err := o.Delete(lost); err != nil {
		t.Fatal(err)
	}
	if err := o.Sync(); err != nil {
		t.Errorf("without the object: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// An object whose drop has failed is there.
func TestADropThatFails(t *testing.T) {
	disk := vfs.NewMem(64 << 20)
	fs := vfs.NewFaulty(disk)
	d := mustOpen(t, small(fs))
	o := mustObjects(t, d)
	x := tier.Object{ID: 1, Bytes: 5000}
	putObject(t, o, x)
	if err := o.Sync(); err != nil {
		t.Fatal(err)
	}
	broken := fs.Add(&vfs.Rule{Ops: vfs.OpWrite | vfs.OpSync, Err: unix.EIO})
	if err := o.Delete(x); !errors.Is(err, unix.EIO) {
		t.Errorf("the catalog cannot be written: %v", err)
	}
	if _, err := o.Open(x); err != nil {
		t.Errorf("the object that was not dropped: %v", err)
	}
	broken.Disable()
	if err := o.Delete(x); err != nil {
		t.Errorf("the catalog can be written again: %v", err)
	}
	if _, err := o.Open(x); !errors.Is(err, tier.ErrAbsent) {
		t.Errorf("the object that was dropped: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// The end of the directory ends the waits.
func TestObjectsOfAClosedDirectory(t *testing.T) {
	d := mustOpen(t, small(vfs.NewMem(64<<20)))
	o := mustObjects(t, d)
	x, late := tier.Object{ID: 1, Bytes: 5000}, tier.Object{ID: 2, Offset: 64 << 10, Bytes: 1}
	putObject(t, o, x)
	s, err := o.Create(late, nil)
	if err := errors.Join(err, s.Write(0, []byte{1})); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.Sync(); err != nil {
		t.Errorf("what was handed over has landed before the end: %v", err)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"sync": o.Sync(), "delete": o.Delete(x), "sync of the directory": d.Sync()} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The rows of objects are checkpoints that a client can read, and a check finds nothing wrong with them.
func TestObjectsAreCheckpoints(t *testing.T) {
	disk := vfs.NewMem(64 << 20)
	d := mustOpen(t, small(disk))
	o := mustObjects(t, d)
	for id, bytes := range []int64{0, 1, 4096, 70_000} {
		putObject(t, o, tier.Object{ID: uint64(id) + 1, Offset: int64(id) * 128 << 10, Bytes: bytes})
	}
	if err := errors.Join(o.Sync(), d.Close()); err != nil {
		t.Fatal(err)
	}
	options := small(disk)
	options.Describes = description.Check
	v, err := Read(options)
	if err != nil {
		t.Fatal(err)
	}
	c, err := v.Check(Scope{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, c)
	if sum := c.Summary(); len(sum.Faults) > 0 || sum.Checkpoints != 4 {
		t.Errorf("%+v", sum)
	}
	view, err := v.Objects("objects")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := view.Create(tier.Object{ID: 9, Offset: 512 << 10}, nil); !errors.Is(err, unix.EROFS) {
		t.Errorf("create in a view: %v", err)
	}
	if err := view.Delete(tier.Object{ID: 1}); !errors.Is(err, unix.EROFS) {
		t.Errorf("delete in a view: %v", err)
	}
	if err := errors.Join(view.Sync(), v.Close()); err != nil {
		t.Error(err)
	}
}

// A history of other checkpoints has no objects.
func TestAHistoryWithoutObjects(t *testing.T) {
	o, landed, is := watched(small(vfs.NewMem(64 << 20)))
	d := mustOpen(t, o)
	is(d)
	if err := put(d, landed, 1, 2, 0, pattern(5000, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Objects("h"); !errors.Is(err, ErrDamaged) {
		t.Errorf("key 1 with serial 2: %v", err)
	}
	objects := mustObjects(t, d)
	for _, id := range []uint64{0, catalog.MostSerial + 1} {
		if _, err := objects.Create(tier.Object{ID: id}, nil); !errors.Is(err, tier.ErrRange) {
			t.Errorf("the ID %d: %v", id, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// An object takes a file, with its head, in every segment that its row refers to, also where nothing was written.
func TestRowsReferToFiles(t *testing.T) {
	disk := vfs.NewMem(64 << 20)
	d := mustOpen(t, small(disk))
	o := mustObjects(t, d)
	for i, write := range []int64{-1, 0, 70_000, 199_999} {
		x := tier.Object{ID: uint64(i) + 1, Offset: int64(i)*4*64<<10 + 3*segment.Block, Bytes: 200_000}
		s, err := o.Create(x, nil)
		if err == nil && write >= 0 {
			err = s.Write(write, []byte{1})
		}
		if err := errors.Join(err, s.Commit()); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.Sync(); err != nil {
		t.Fatal(err)
	}
	v, err := Read(small(disk.Crash(rand.New(rand.NewPCG(1, 3)), 0)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := v.Check(Scope{})
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, c)
	if sum := c.Summary(); len(sum.Faults) > 0 {
		t.Errorf("%+v", sum.Faults)
	}
	for number := range int64(16) {
		if err := v.Space().Proves(number*64<<10, 1); err != nil {
			t.Errorf("data file %d: %v", number, err)
		}
	}
	if err := errors.Join(v.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
}
