package engine

import (
	"math"
	"slices"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
)

// An encoder that takes three times as long as the link counts in the predictions of what it encodes, and in the rate at which the tier drains. The
// estimate of the link stays that of the link, also for raw objects beside.
func TestEncodersCostTime(t *testing.T) {
	const size, way, stage = int64(1 << 20), int64(1e6), int64(3e6)
	e := New(Config{Flush: Eager, Workers: 1, Tiers: []TierConfig{
		{Name: "host", Capacity: 64 * size, WriteRate: float64(size) * 1e9 / float64(way), ReadRate: 1e9}, {Name: "disk", Capacity: 64 * size, Remote: true},
	}})
	h, l := e.History("h"), e.links[0]
	shape := &Shape{Forms: [MaxTiers]Form{Raw, Encoded}, Sizes: [MaxTiers]int64{0, size}}
	now := int64(0)
	capture := func(k int64, s *Shape) *Object {
		c, err := e.BeginCapture(now, h, model.NumberKey(k), size, 1, nil, CaptureOptions{Shape: s})
		if err != nil || c.Phase != Ready {
			t.Fatal(c, err)
		}
		e.EndCapture(now, c, true)
		return &c.Rec.own
	}
	for k := range int64(40) {
		o := capture(k, shape)
		x := e.Next(now, anyDown)
		if x == nil || x.Stage != Encoding || x.Side != UpperSide {
			t.Fatalf("the flush of an encoded object: %+v", x)
		}
		now += stage + way/2 // half of the bytes cross the link
		x.Wrote(size / 2)
		x.Spent(stage)
		e.Done(now, x, nil)
		if o.Bytes(1) != size/2 || e.Use(1).Used != (k+1)*size/2 || e.Stats.Tiers[1].Written != (k+1)*size/2 {
			t.Fatalf("%d objects of %d bytes: %+v", k+1, o.Bytes(1), e.Use(1))
		}
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > want/20 {
			t.Errorf("%s: %g, must be about %g", what, got, want)
		}
	}
	encoded, raw := capture(100, shape), capture(101, nil)
	near("ns of an encoded flush", float64(l.flushTime(encoded)), float64(stage+way/2))
	near("ns of a raw flush", float64(l.flushTime(raw)), float64(way))
	near("bytes/s of the link", e.Use(0).WriteRate, float64(size)*1e9/float64(way))
	near("bytes/s that leave the host", l.drain(e.state), float64(size)*1e9/float64(stage+way/2))
}

// What a flush is refused for it is not refused for ever: once others have become smaller than was predicted, it is predicted anew.
func TestRefusedFlushesArePredictedAnew(t *testing.T) {
	expected := int64(100)
	e := New(Config{Flush: Eager, Tiers: []TierConfig{{Name: "host", Capacity: 1000}, {Name: "disk", Capacity: 300, Remote: true}},
		Expect: func(*Record, Form) int64 { return expected }})
	shape := &Shape{Forms: [MaxTiers]Form{Raw, Encoded}, Sizes: [MaxTiers]int64{0, 100}}
	for k := range int64(10) {
		c, err := e.BeginCapture(0, e.History("h"), model.NumberKey(k), 100, 1, nil, CaptureOptions{Shape: shape})
		if err != nil {
			t.Fatal(err)
		}
		e.EndCapture(0, c, true)
	}
	var all []*Transfer
	for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
		all = append(all, x)
	}
	if len(all) != 3 {
		t.Fatalf("%d flushes", len(all))
	}
	expected = 20 // no gap behind what was written has room for 100
	for _, x := range all {
		x.Wrote(20)
		e.Done(0, x, nil)
	}
	n := 0
	for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
		x.Wrote(20)
		e.Done(0, x, nil)
		n++
	}
	if n != 7 {
		t.Errorf("%d flushes more", n)
	}
}

// A flush gets the room that is predicted, and, if the encoder comes to more, that of the bound.
func TestRoomIsPredicted(t *testing.T) {
	asked := 0
	e := New(Config{Flush: Eager, Tiers: []TierConfig{{Name: "host", Capacity: 1000}, {Name: "disk", Capacity: 1000, Remote: true}},
		Expect: func(r *Record, f Form) int64 {
			if asked++; f != Encoded {
				t.Errorf("a prediction for form %d", f)
			}
			return 40
		}})
	shape := &Shape{Forms: [MaxTiers]Form{Raw, Encoded}, Sizes: [MaxTiers]int64{0, 100}}
	next := func(k int64) *Transfer {
		c, err := e.BeginCapture(0, e.History("h"), model.NumberKey(k), 100, 1, nil, CaptureOptions{Shape: shape})
		if err != nil {
			t.Fatal(err)
		}
		e.EndCapture(0, c, true)
		x := e.Next(0, anyDown)
		if x == nil || x.Writes() != 40 || e.Use(1).Used != k*30+40 {
			t.Fatalf("%+v, %d in use", x, e.Use(1).Used)
		}
		return x
	}
	x := next(0)
	x.Wrote(30)
	e.Done(0, x, nil)
	e.Enlarge(0, next(1))
	if x = e.Next(0, anyDown); x == nil || x.Writes() != 100 {
		t.Fatalf("%+v", x)
	}
	x.Wrote(90)
	if e.Done(0, x, nil); e.Use(1).Used != 30+90 || asked != 2 {
		t.Errorf("%d bytes in use, %d predictions", e.Use(1).Used, asked)
	}
}

// Where a flush has made other bytes than it was given, the next load may bring more of them.
func TestOtherBytesMayBeMore(t *testing.T) {
	e := New(Config{Flush: Eager, Tiers: []TierConfig{{Name: "device", Capacity: 200}, {Name: "host", Capacity: 200}, {Name: "disk", Capacity: 1000, Remote: true}}})
	shape := &Shape{Forms: [MaxTiers]Form{Raw, Encoded, Difference}, Sizes: [MaxTiers]int64{0, 100, 120}}
	h := e.History("h")
	var all []*Record
	for k := range int64(9) {
		c, err := e.BeginCapture(0, h, model.NumberKey(k), 100, 1, nil, CaptureOptions{Shape: shape})
		if err != nil {
			t.Fatal(err)
		}
		e.EndCapture(0, c, true)
		all = append(all, c.Rec)
		for x := e.Next(0, anyDown); x != nil; x = e.Next(0, anyDown) {
			if x.Wrote(60); x.From == 1 {
				x.Wrote(80)
				x.Rewrote()
			}
			e.Done(0, x, nil)
		}
	}
	o := all[slices.IndexFunc(all, func(r *Record) bool { return r.own.copies[1] == fragment.None })].Objects()[0]
	if o.Bytes(1) != 100 || o.Bytes(2) != 80 {
		t.Fatalf("%d bytes on the host, %d on the disk", o.Bytes(1), o.Bytes(2))
	}
	r, err := e.BeginRestore(0, h, o.home.Key, RestoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for x := e.Next(0, anyUp); x != nil; x = e.Next(0, anyUp) {
		if x.To == 1 {
			x.Wrote(78)
		}
		e.Done(0, x, nil)
	}
	if r.Phase != Ready || o.Bytes(1) != 78 {
		t.Errorf("phase %v, %d bytes", r.Phase, o.Bytes(1))
	}
}
