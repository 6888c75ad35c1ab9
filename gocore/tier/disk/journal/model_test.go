package journal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/base/vfs"
)

// A log goes through a series of crashes, each at any moment after the previous one, with faults too. No acknowledged record is ever lost, and a record
// that was read after a crash stays.
func TestModelOfCrashes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := disk(t)
		var kept []string // acknowledged records, and those that were found and continued
		number := 0
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			rule := &vfs.Rule{
				Skip: rapid.Int64Range(0, 60).Draw(rt, "fault"), Err: unix.EIO,
				Times: rapid.SampledFrom([]int64{0, 1, 2}).Draw(rt, "times"),
				Short: rapid.Bool().Draw(rt, "short"), ShortBytes: rapid.IntRange(0, 100).Draw(rt, "bytes"),
			}
			o := options(vfs.NewFaulty(m, rule))
			var failed []string // since the last acknowledged one
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
			if harm(state) {
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
