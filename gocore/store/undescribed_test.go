package store

import (
	"errors"
	"fmt"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// A checkpoint on disk whose description is invalid is not restored. Others are restored, and it can be dropped and rewritten.
func TestWhatIsNotDescribedIsNotGivenOut(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		t.Run(fmt.Sprint("lazy ", lazy), func(t *testing.T) {
			c := stored(1<<20, 4<<20, vfs.NewMem(64<<20))
			c.LazyRows = lazy
			s, err := Open(c)
			if err != nil {
				t.Fatal(err)
			}
			h := newClient(t, s, "h")
			for k := range int64(3) {
				if err := h.wait(h.mustPut(k, random(1000*int(1+k), uint64(k))).Ticket, status.TierDisk); err != nil {
					t.Fatal(err)
				}
			}
			shut(t, s)
			c.Describes = func(l *model.Layout) error {
				if l.Slot == 2000 {
					return errors.New("no description")
				}
				return nil
			}
			s = open(t, c)
			h = newClient(t, s, "h")
			info, err := h.h.Lookup(model.NumberKey(1))
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Layout(info.Layout)
			wants(t, err, status.Corrupt)
			_, _, err = h.get(1, 2000, operation.RestoreArgs{})
			wants(t, err, status.Corrupt)
			_, _, err = h.lease(1, operation.RestoreArgs{})
			wants(t, err, status.Corrupt)
			h.mustGet(0, random(1000, 0), operation.RestoreArgs{})
			h.mustGet(2, random(3000, 2), operation.RestoreArgs{})
			h.mustPut(1, random(500, 9))
			h.mustGet(1, random(500, 9), operation.RestoreArgs{})
		})
	}
}
