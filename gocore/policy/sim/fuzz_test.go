package sim

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
)

// Any request is refused, or answered with possible times and counts. Only short ones are played.
func FuzzPlay(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte, numbers []byte) {
		var q Request
		if len(text) > 1000 || json.Unmarshal(text, &q) == nil && q.calls() > 200 {
			return
		}
		if q.numbered(numbers) {
			said, err := json.Marshal(q)
			if err != nil {
				t.Fatal(err)
			}
			text = said
		}
		a, err := Play(text)
		if err != nil {
			return
		}
		for name, x := range map[string]float64{
			"blocked": a.Blocked, "captures": a.CaptureBlocked, "restores": a.RestoreBlocked, "copying": a.Copying, "bound": a.LowerBound, "elapsed": a.Elapsed,
			"distance": a.Distance, "written": float64(a.Written), "read": float64(a.Read), "hits": float64(a.Hits),
		} {
			if x < 0 || math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("%s: %s is %g", text, name, x)
			}
		}
		// Moments are whole nanoseconds, and numbers are as large as a double holds exactly.
		slack := 1e-6 + a.Elapsed*1e-9
		if a.Hits > a.Restores || a.Blocked < a.LowerBound-slack || a.Elapsed < a.Blocked-slack || a.Blocked < a.Copying-slack {
			t.Fatalf("%s: %+v", text, a)
		}
		if a.Histories == nil {
			return
		}
		var all Answer // sum of the shares
		for _, x := range a.Histories {
			all.CaptureBlocked, all.RestoreBlocked = all.CaptureBlocked+x.CaptureBlocked, all.RestoreBlocked+x.RestoreBlocked
			all.Hits, all.Restores = all.Hits+x.Hits, all.Restores+x.Restores
			if x.Distance < 0 || x.Hits > x.Restores {
				t.Fatalf("%s: %+v", text, a)
			}
		}
		if all.Hits != a.Hits || all.Restores != a.Restores || max(all.CaptureBlocked-a.CaptureBlocked, a.CaptureBlocked-all.CaptureBlocked) > slack ||
			max(all.RestoreBlocked-a.RestoreBlocked, a.RestoreBlocked-all.RestoreBlocked) > slack {
			t.Fatalf("%s: %+v, the shares are %+v", text, a, all)
		}
	})
}

func (q *Request) calls() (n int) {
	for _, track := range q.tracks() {
		n += len(track.Sizes) + len(track.Order)
	}
	return n
}

// numbered adds numbers of 9 bytes each to a request: one byte selects the field, eight are the value. False if there are none.
func (q *Request) numbered(numbers []byte) (some bool) {
	for ; len(numbers) >= 9; numbers = numbers[9:] {
		n := int64(binary.LittleEndian.Uint64(numbers[1:])) >> (numbers[0] & 0xf0 >> 2)
		x := float64(n)
		sizes, order := &q.Sizes, &q.Order
		if numbers[0]&8 != 0 { // one of three histories
			for len(q.Tracks) < 3 {
				q.Tracks = append(q.Tracks, Track{Name: string(rune('a' + len(q.Tracks)))})
			}
			track := &q.Tracks[uint64(n)>>3%3]
			sizes, order = &track.Sizes, &track.Order
		}
		switch numbers[0] & 7 {
		case 0, 1:
			*sizes = append(*sizes, n)
		case 2:
			*order = append(*order, Turn{Key: n % int64(len(*sizes)+1)})
		case 3:
			if turn := (Turn{Key: n % int64(len(*sizes)+1)}); n&1 == 0 {
				*order = append(*order, turn)
			} else {
				*order = append(*order, Turn{Steps: 1 + int64(uint64(n)>>1%mostSteps)})
			}
		case 4:
			q.Tiers = append(q.Tiers, Level{n, x, x})
		case 5:
			q.Interval = x / 1e3
		case 6:
			q.CopyRate = x
		case 7:
			if n := len(q.Tiers); n > 0 {
				q.Tiers[n-1].WriteRate = x
			}
		}
		some = true
	}
	return some
}
