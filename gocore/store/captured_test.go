package store

import (
	"fmt"
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
)

// A checkpoint reports the time of the call that captured it, also after the store was reopened. A version that replaces it reports its own time.
func TestCheckpointsSayWhenTheyWereCaptured(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		t.Run(fmt.Sprint("lazy ", lazy), func(t *testing.T) {
			c := stored(1<<20, 4<<20, vfs.NewMem(64<<20))
			c.LazyRows = lazy
			at := time.Date(2026, 11, 25, 7, 31, 0, 123456789, time.UTC)
			c.Clock = func() time.Time { at = at.Add(time.Second); return at }
			want := map[int64]int64{}
			look := func(s *Store) {
				t.Helper()
				for k, ns := range want {
					i, err := newClient(t, s, "h").h.Lookup(model.NumberKey(k))
					if err != nil || i.Time != ns {
						t.Errorf("checkpoint %d was captured at %d, not %d: %v", k, i.Time, ns, err)
					}
				}
			}
			s := open(t, c)
			a := newClient(t, s, "h")
			for i, k := range []int64{3, 1, 2, 1} { // 1 is written a second time
				out := a.mustPut(k, random(1000, uint64(i)))
				want[k] = at.UnixNano()
				if err := a.wait(out.Ticket, status.TierDisk); err != nil {
					t.Fatal(err)
				}
			}
			look(s)
			shut(t, s)
			at = at.Add(-time.Hour) // setting the clock back does not change stored times
			look(reopened(t, c))
		})
	}
}
