package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/operation"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/policy/schedule"
)

// scheduled is a board whose history has a schedule.
func scheduled(t *testing.T, s Schedule, change func(c *config.Config)) (*board, *client) {
	b, c := encodingBoard(t, func(c *config.Config) {
		c.Devices[0].Bytes = 256 << 20 // staging memory for 1 MiB at once
		if change != nil {
			change(c)
		}
	})
	c.s.Lock()
	c.s.workers.Grace = hang // however busy the machine is
	c.s.Unlock()
	b.check(c.h.Reduce(Reduction{Method: "codec", Schedule: &s}))
	return b, c
}

// course reads what the schedule has come to.
func (c *client) course() (of Course, p schedule.Profile) {
	c.t.Helper()
	text, err := c.h.Course()
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	if err == nil {
		p, err = schedule.ParseProfile(of.Profile)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return of, p
}

// heldBack is how many flushes wait for later checkpoints.
func (c *client) heldBack() (n int) {
	c.s.Lock()
	defer c.s.Leave()
	return c.s.workers.Held()
}

// flushed is how many checkpoints the host has.
func (c *client) flushed() (n int) {
	c.s.Lock()
	defer c.s.Leave()
	c.h.h.Each(func(r *engine.Record) {
		if c.s.Engine.Complete(r, c.s.HostTier()) {
			n++
		}
	})
	return n
}

// Checkpoints that a schedule accumulates leave the device when the last of their run is captured, by one call of the encoder. Nothing else lets them go.
func TestAScheduleAccumulates(t *testing.T) {
	const size = 200_004
	for _, at := range []struct {
		letters            string
		waits              int // flushes that are held back after so many rounds of the letters, and one checkpoint more
		alone, accumulated int64
	}{{"AAAX", 1, 0, 16}, {"AX", 1, 0, 8}, {"C", 0, 5, 0}, {"UAX", 0, 0, 8}, {"U", 0, 0, 0}} {
		t.Run(at.letters, func(t *testing.T) {
			b, c := scheduled(t, Schedule{Repeat: at.letters}, nil)
			count := int64(4*len(at.letters) + 1)
			for k := range count {
				c.mustPutOn(b, k, few(size, uint64(k)))
			}
			eventually(t, "all runs have left the device", func() bool { return c.flushed() == int(count)-at.waits && c.heldBack() == at.waits })
			f := c.reduction()
			if f.Accumulated != at.accumulated || f.Encoded-f.Accumulated != at.alone {
				t.Errorf("%+v", f)
			}
			if of, _ := c.course(); of.Letters != strings.Repeat(at.letters, 5)[:count] {
				t.Errorf("%q of %q", of.Letters, at.letters)
			}
			b.check(c.wait(0, status.TierHost))
			c.pushOff(b)
			for k := count - 1; k >= 0; k-- {
				c.mustGetOn(b, k, few(size, uint64(k)))
			}
			drained(t, c.s)
		})
	}
}

// What needs the room or the bytes of checkpoints that are held back lets them go: a caller that waits for them, a capture without room on the device or in the host
// tier, a drop, a smaller tier, another schedule, and a run that has become too long.
func TestARunEndsEarly(t *testing.T) {
	const size, count = 100_004, 20
	more := func(b *board, c *client, n int64) {
		at := b.alloc(size)
		for k := range n {
			out, err := c.putOn(b, count+k, at, size)
			b.check(err)
			c.untilCaptured(out)
		}
	}
	for name, at := range map[string]struct {
		device int64
		end    func(b *board, c *client)
	}{
		"for a wait":             {4 << 20, func(b *board, c *client) { b.check(c.wait(0, status.TierHost)) }},
		"for room on the device": {4 << 20, func(b *board, c *client) { more(b, c, 40) }},
		"for room in the host": {4 << 20, func(_ *board, c *client) {
			other := newClient(c.t, c.s, "other")
			for k := range int64(8) { // the last one finds no room, and the tier is full without it
				_, _ = other.put(k, make([]byte, 8<<20))
			}
		}},
		"for drops":          {4 << 20, func(_ *board, c *client) { c.drop(0) }},
		"for a smaller tier": {4 << 20, func(_ *board, c *client) { c.resize(1 << 20) }},
		"when it is full":    {32 << 20, func(b *board, c *client) { more(b, c, 64-count) }},
		"with another schedule": {4 << 20, func(b *board, c *client) {
			b.check(c.h.Reduce(Reduction{Method: "codec", Schedule: &Schedule{Repeat: "C"}}))
		}},
		"with none": {4 << 20, func(b *board, c *client) { b.check(c.h.Reduce(Reduction{Method: "codec"})) }},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := scheduled(t, Schedule{Repeat: strings.Repeat("A", 200) + "X"}, func(c *config.Config) { c.Devices[0].Bytes = at.device })
			for k := range int64(count) {
				c.mustPutOn(b, k, few(size, uint64(k)))
			}
			eventually(t, "all flushes are held back", func() bool { return c.heldBack() == count })
			at.end(b, c)
			eventually(t, "the run ends", func() bool { return c.flushed() > 0 })
			for k := range int64(count) {
				if k > 0 || name != "for drops" {
					c.mustGetOn(b, k, few(size, uint64(k)))
				}
			}
		})
	}
}

// A run whose last checkpoint does not come ends when the time is over.
func TestARunEndsInTime(t *testing.T) {
	const size, count = 200_004, 3
	b, c := scheduled(t, Schedule{Repeat: "AAAAAX"}, nil)
	c.s.Lock()
	c.s.workers.Grace = 20 * time.Millisecond
	c.s.Unlock()
	for k := range int64(count) {
		c.mustPutOn(b, k, few(size, uint64(k)))
	}
	eventually(t, "the run ends", func() bool { return c.flushed() == count })
}

// A store closes while checkpoints are held back.
func TestCloseWithARunHeldBack(t *testing.T) {
	b, c := scheduled(t, Schedule{Repeat: strings.Repeat("A", 50) + "X"}, nil)
	for k := range int64(5) {
		c.untilCaptured(c.mustPutOn(b, k, few(100_000, uint64(k))))
	}
	drained(t, c.s)
}

// A run that is like one before is planned by its profile from the first checkpoint on, and one without a profile from its own last checkpoints.
func TestAScheduleIsPlanned(t *testing.T) {
	const size, count = 200_004, 40
	b, c := scheduled(t, Schedule{}, nil)
	run := func(c *client, count int64) (Course, schedule.Profile) {
		for k := range count {
			c.untilCaptured(c.mustPutOn(b, k, few(size, uint64(k))))
		}
		b.check(c.wait(0, status.TierHost))
		return c.course()
	}
	first, p := run(c, count)
	if !strings.HasPrefix(first.Letters, "----") || len(p.Observations) != count || len(p.Measurements) == 0 {
		t.Fatalf("%+v", first)
	}
	for i, o := range p.Observations {
		if o.Size < size || o.Encoded <= 0 || o.Encoded >= o.Size || (o.Interval > 0) != (i > 0) {
			t.Fatalf("observation %d: %+v", i, o)
		}
	}
	eventually(t, "a plan", func() bool { // a search begins behind a capture, once flushes before it have ended
		of, _ := c.course()
		if of.Plans == 0 {
			c.untilCaptured(c.mustPutOn(b, 0, few(size, 0)))
		}
		return of.Plans > 0
	})
	if again, _ := run(c, count); strings.Trim(again.Letters[count:], "-") == "" {
		t.Errorf("%+v", again)
	}

	second := newClient(t, c.s, "like it")
	b.check(second.h.Reduce(Reduction{Method: "codec", Schedule: &Schedule{Profile: first.Profile}}))
	if of, _ := second.course(); of.Plans != 1 {
		t.Fatalf("%+v", of)
	}
	like, _ := run(second, count)
	if strings.ContainsRune(like.Letters, '-') {
		t.Errorf("%q", like.Letters)
	}
	if _, err := schedule.ParsePlan(like.Letters); err != nil {
		t.Error(err)
	}
	for k := range int64(count) {
		second.mustGetOn(b, k, few(size, uint64(k)))
	}
}

func TestSchedulesThatCannotBe(t *testing.T) {
	_, c := encodingBoard(t, nil)
	for _, r := range []Reduction{
		{Method: "auto", Schedule: &Schedule{}}, {Method: "raw", Schedule: &Schedule{}}, {Method: "tree", Schedule: &Schedule{}},
		{Method: "codec", Compressor: "zstd", Schedule: &Schedule{}}, {Method: "codec", Schedule: &Schedule{Repeat: "AA"}},
		{Method: "codec", Schedule: &Schedule{Repeat: "B"}}, {Method: "codec", Schedule: &Schedule{Profile: []byte(`{"observations": []}`)}},
	} {
		if err := c.h.Reduce(r); status.CodeOf(err) != status.Invalid {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if text, err := c.h.Course(); err != nil || string(text) != "null" {
		t.Error(string(text), err)
	}
}

// Faults of the driver while runs are held back or encoded cost nothing that is captured.
func TestFaultsInAScheduledRun(t *testing.T) {
	const size, count = 200_004, 12
	for i, call := range []string{"Launch", "Copy", "RecordEvent", "SynchronizeEvent"} {
		t.Run(fmt.Sprint(call), func(t *testing.T) {
			b, c := scheduled(t, Schedule{Repeat: "AAX"}, nil)
			var at [count]device.Address
			for k := range at {
				at[k] = b.alloc(size)
				b.fill(at[k], few(size, uint64(k)))
			}
			for k := range int64(count) {
				if k == 5 {
					b.driver.Fail(call, cuda.InvalidValue, i, 1)
				}
				c.again(func() error { _, err := c.putOn(b, k, at[k], size); return err })
			}
			c.again(func() error { return c.wait(0, status.TierHost) })
			for k := range int64(count) {
				var got []byte
				c.again(func() (err error) { got, _, err = c.get(k, size, operation.RestoreArgs{}); return err })
				if string(got) != string(few(size, uint64(k))) {
					t.Fatalf("checkpoint %d differs", k)
				}
			}
		})
	}
}
