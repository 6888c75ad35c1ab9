package engine

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
)

// referring is an engine of a host and a disk whose copies need others: each copy on the disk needs those of up to two checkpoints that were there when it was
// written, as long as it is there.
type referring struct {
	*Engine
	t     *rapid.T
	h     *History
	rooms map[int64]*needed   // by offset on the disk
	needs map[*Record][]int64 // offsets, of the record's copy on the disk
	freed []int64
}

type needed struct {
	bytes int64
	by    int  // copies that need it
	alone bool // no record has it
}

func (c *referring) Lookup(*History, model.Key) (size int64, ok bool) { return 0, false }
func (c *referring) Find(*History, model.Key) *Record                 { return nil }
func (c *referring) Removed(*Record, *Record)                         {}

func (c *referring) Keeps(r *Record, t int, off int64) bool {
	if t != 1 {
		c.t.Fatalf("asked about tier %d", t)
	}
	for _, at := range c.needs[r] {
		n := c.rooms[at]
		if n.by--; n.by == 0 && n.alone {
			c.freed = append(c.freed, at)
		}
	}
	delete(c.needs, r)
	n := c.rooms[off]
	if n == nil {
		return false
	}
	if n.by > 0 {
		n.alone = true
		return true
	}
	delete(c.rooms, off)
	return false
}

func (c *referring) Freed(t int) (off, bytes int64, ok bool) {
	if len(c.freed) == 0 {
		return 0, 0, false
	}
	off = c.freed[0]
	bytes, c.freed = c.rooms[off].bytes, c.freed[1:]
	delete(c.rooms, off)
	return off, bytes, true
}

// A room on the disk stays reserved as long as a copy there needs its bytes, also without a checkpoint of its own, and is free directly behind that.
func TestRoomsThatOtherCopiesNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const host, disk = 1000, 2000
		c := &referring{t: t, rooms: map[int64]*needed{}, needs: map[*Record][]int64{}}
		c.Engine = New(Config{Flush: Eager, Catalog: c, Tiers: []TierConfig{
			{Name: "host", Capacity: host, WriteRate: 1e9, ReadRate: 1e9},
			{Name: "disk", Capacity: disk, Remote: true, Referring: true, WriteRate: 1e9, ReadRate: 1e9},
		}})
		c.h = c.History("h")
		alive := map[*Record]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			if len(alive) > 0 && rapid.Bool().Draw(t, "drop") {
				var all []*Record
				for k := range int64(60) {
					if r := c.h.Get(model.NumberKey(k)); r != nil {
						all = append(all, r)
					}
				}
				r := rapid.SampledFrom(all).Draw(t, "of")
				c.Drop(0, c.h, r.Key)
				delete(alive, r)
			} else {
				k, size := model.NumberKey(rapid.Int64Range(0, 59).Draw(t, "key")), rapid.Int64Range(1, 150).Draw(t, "size")
				if c.h.Get(k) != nil {
					continue
				}
				capture, err := c.BeginCapture(0, c.h, k, size, 1, nil, CaptureOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if capture.Phase != Ready {
					c.CancelCapture(0, capture)
					continue
				}
				c.EndCapture(0, capture, true)
				alive[capture.Rec] = true
			}
			for x := c.Next(0, anyDown); x != nil; x = c.Next(0, anyDown) {
				for _, at := range slices.Sorted(maps.Keys(c.rooms)) {
					n := c.rooms[at]
					if len(c.needs[x.Rec]) < 2 && rapid.Bool().Draw(t, "needs") && !n.alone {
						n.by++
						c.needs[x.Rec] = append(c.needs[x.Rec], at)
					}
				}
				c.rooms[x.ToOff] = &needed{bytes: x.Writes()}
				c.Done(0, x, nil)
			}
			used := int64(0)
			for at, n := range c.rooms {
				used += n.bytes
				if n.alone != c.IsReserved(1, at) {
					t.Fatalf("the room at %d: reserved %v, and no record has it: %v", at, c.IsReserved(1, at), n.alone)
				}
			}
			if got := c.Occupied(1, func(int64, int64) {}); got != used {
				t.Fatalf("%d bytes are occupied, and %d are needed", got, used)
			}
		}
		c.Clear(0, c.h)
		if got := c.Occupied(1, func(int64, int64) {}); got != 0 || len(c.rooms) > 0 {
			t.Fatalf("%d bytes are occupied at the end, %d rooms", got, len(c.rooms))
		}
	})
}
