package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/vfs"
)

// A log goes through crash after crash, each at any moment of what the last one was followed by, faults included; nothing that was acknowledged is ever
// lost, and what has once been read behind a crash stays.
func TestModelOfCrashes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := disk(t)
		var kept []string // what has been acknowledged, or found and continued
		number := 0
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			rule := &vfs.Rule{
				Skip: rapid.Int64Range(0, 60).Draw(rt, "fault"), Err: unix.EIO,
				Times: rapid.SampledFrom([]int64{0, 1, 2}).Draw(rt, "times"),
				Short: rapid.Bool().Draw(rt, "short"), ShortBytes: rapid.IntRange(0, 100).Draw(rt, "bytes"),
			}
			o := options(vfs.NewFaulty(m, rule))
			var failed []string // since the last that was acknowledged
			if state, err := Read(o, func([]byte) error { return nil }); err == nil {
				l := Open(o, state)
				for range rapid.IntRange(0, 8).Draw(rt, "appends") {
					number++
					record := fmt.Sprint(number, strings.Repeat("-", rapid.IntRange(0, 9000).Draw(rt, "length")))
					if l.Append([]byte(record), nil) == nil {
						kept, failed = append(kept, record), nil
					} else {
						failed = append(failed, record)
					}
					if rapid.IntRange(0, 3).Draw(rt, "compact") == 0 {
						err := l.Compact(func(give func([]byte) error) error {
							for _, record := range kept {
								if err := give([]byte(record)); err != nil {
									return err
								}
							}
							return nil
						})
						if err == nil {
							failed = nil
						}
					}
				}
				if rapid.Bool().Draw(rt, "close") {
					_ = l.Close()
				} else {
					defer l.Close() // the process dies
				}
			}
			m = m.Crash(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)), rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(rt, "keep"))
			got, state := found(t, options(m))
			if len(state.Damage) > 0 {
				rt.Fatalf("damaged: %v", state.Damage)
			}
			if len(got) < len(kept) || !slices.Equal(got[:len(kept)], kept) {
				rt.Fatalf("of %d acknowledged there are other %d", len(kept), len(got))
			}
			for _, record := range got[len(kept):] {
				i := slices.Index(failed, record)
				if i < 0 {
					rt.Fatalf("%.20q is there, which nobody asked for lately", record)
				}
				failed = failed[i+1:]
			}
			kept = got
		}
	})
}

// FuzzRead gives the reader files of well-made frames that say anything, and of anything else: it ends, and gives out nothing that no frame holds.
func FuzzRead(f *testing.F) {
	f.Add([]byte{kindBegin, 0, 16, 0, kindBatch, 1, 9, 0, kindClosed, 1, 0, 0}, uint8(1))
	f.Add([]byte{kindBegin, 0, 16, 1, kindSnapshot, 5, 30, 0, kindComplete, 5, 0, 0, kindBatch, 6, 3, 2}, uint8(2))
	f.Add([]byte{kindBatch, 200, 255, 3, 1, 1, 1, 1}, uint8(3))
	f.Fuzz(func(t *testing.T, plan []byte, files uint8) {
		m := disk(t)
		o := options(m)
		for number := uint64(1); number <= uint64(files%4)+1; number++ {
			file, err := m.Create(o.path(number), false)
			must(t, err)
			_, err = file.WriteAt(forged(number, plan), 0)
			must(t, err, file.Close())
			plan = plan[len(plan)/2:]
		}
		state, err := Read(o, func(record []byte) error {
			if len(record) > MostPayload {
				t.Error("a record longer than a frame")
			}
			return nil
		})
		if errors.Is(err, ErrVersion) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if state.Last < 1<<60 { // else the numbers run out
			before := state.Last
			l := Open(o, state)
			must(t, l.Append([]byte("more"), nil), l.Close())
			if _, after := found(t, o); after.Last != before+1 {
				t.Errorf("batch %d behind %d", after.Last, before)
			}
		}
	})
}

// forged is a file made by a plan of four bytes for each frame: kind, sequence, length, and what is wrong with it.
func forged(number uint64, plan []byte) (p []byte) {
	for ; len(plan) >= 4; plan = plan[4:] {
		payload := make([]byte, plan[2])
		for i := range payload {
			payload[i] = plan[i%len(plan)]
		}
		if plan[0] == kindBegin && len(payload) == beginBytes {
			copy(payload, begin{behind: uint64(plan[1]), snapshot: plan[3]&1 == 1}.bytes())
		}
		start := len(p)
		p = appendFrame(p, place{store, number, int64(start)}, uint32(plan[0]), uint64(plan[1])*uint64(plan[3]|1), payload)
		switch plan[3] >> 1 {
		case 1:
			p[start+len(payload)%headBytes] ^= 4
		case 2:
			p = p[:len(p)-len(p)%7]
		case 3:
			p = append(p, plan[:4]...)
		}
	}
	return p
}
