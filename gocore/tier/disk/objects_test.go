package disk

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/tiertest"
)

func TestObjects(t *testing.T) {
	tiertest.Test(t, func(t tiertest.TB, _ uint64) *tiertest.Tier {
		writes := &vfs.Rule{Ops: vfs.OpWrite, Err: unix.EIO}
		writes.Disable()
		o := Options{FS: vfs.NewFaulty(vfs.NewMem(64<<20), writes), Path: "/a", Capacity: 1 << 20, Direct: true}
		d, err := Open(1, o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		return &tiertest.Tier{
			Objects: d.Objects(), Room: o.Capacity, Most: 150_000, Close: d.Space.Close,
			Fail: func(on bool) {
				if on {
					writes.Enable()
				} else {
					writes.Disable()
				}
			},
		}
	})
}

// Errors say where they come from, and what is safe.
func TestErrorsOfObjects(t *testing.T) {
	writes := &vfs.Rule{Ops: vfs.OpWrite, Err: unix.EIO}
	d, err := Open(1, Options{FS: vfs.NewFaulty(vfs.NewMem(64<<20), writes), Path: "/a", Capacity: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	x := tier.Object{ID: 1, Offset: Grain, Bytes: 100}
	source, err := d.Objects().Open(x)
	if err != nil {
		t.Fatal(err)
	}
	sink, err := d.Objects().Create(x, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, outside := d.Objects().Open(tier.Object{Offset: 2 << 20})
	_, nowhere := d.Objects().Create(tier.Object{Offset: 2 << 20}, nil)
	for name, c := range map[string]struct {
		err  error
		code status.Code
	}{
		"read":    {source.Read(0, make([]byte, 100), nil), status.Corrupt},
		"holds":   {source.(tier.Prover).Holds(0, 100), status.Corrupt},
		"write":   {sink.Write(0, make([]byte, 100)), status.IO},
		"commit":  {sink.Commit(), status.IO},
		"outside": {outside, status.IO},
		"nowhere": {nowhere, status.IO},
	} {
		var said *status.Error
		if !errors.As(c.err, &said) || said.Code != c.code || said.Tier != status.TierDisk {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	unwanted, err := d.Objects().Create(x, func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if err := unwanted.Write(0, []byte{1}); err != tier.ErrUnwanted {
		t.Errorf("what is not wanted: %v", err)
	}
	if err := d.Space.Close(); err != nil {
		t.Fatal(err)
	}
}

// The objects of a durable store are durable, and Sync waits for the rows that were handed over.
func TestObjectsOfADurableStore(t *testing.T) {
	landed := 0
	dir, err := durable.Open(durable.Options{
		FS: vfs.NewMem(64 << 20), Dir: "/a", Capacity: 1 << 20, Land: func(group []*durable.Change, _ []int64) { landed += len(group) },
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &Tier{Space: dir.Space(), versions: &versions{dir: dir}}
	d.openObjects()
	if c := d.Objects().Capabilities(); c != (tier.Capabilities{Assigned: true, Durable: true, Grain: Grain}) {
		t.Errorf("%+v", c)
	}
	for range 20 {
		dir.Commit(&durable.Change{History: "h", Serial: 1, Clear: true})
	}
	if err := d.Objects().Sync(); err != nil || landed < 20 {
		t.Errorf("%d changes have landed, %v", landed, err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Objects().Sync(); status.CodeOf(err) == status.OK {
		t.Errorf("sync of a directory that is closed: %v", err)
	}
	d.versions.dir = nil
	if err := d.Objects().Sync(); err != nil {
		t.Errorf("sync of a store that is open for reading: %v", err)
	}
}
