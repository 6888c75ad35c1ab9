package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/operation"
)

// A reader that verifies no checksums gets the bytes of the version that it knows, or the error that the writer has dropped or replaced it. It never
// gets bytes of another checkpoint. The writer replaces checkpoints all the time, so that it reuses space often.
func TestAReaderWithoutChecksumsGetsNothingForeign(t *testing.T) {
	for name, set := range map[string]func(writer, reader *config.Config){
		"no checksums": func(w, _ *config.Config) { w.Checksum = false },
		"verify off":   func(_, r *config.Config) { r.Verify = "off" },
	} {
		t.Run(name, func(t *testing.T) {
			const keys, size = 4, 60_000
			content := func(k int64, version uint64) []byte { return random(size, uint64(k)<<32|version) }
			w := stored(1<<20, 10*size, vfs.NewMem(64<<20))
			w.Flush = "eager"
			r := w
			r.ReadOnly, r.Disk = true, nil
			*r.Host = 64 << 10 // so that nothing stays in memory
			host := int64(1 << 20)
			w.Host = &host
			set(&w, &r)
			s := open(t, w)
			h := newClient(t, s, "h")
			last := map[int64]uint64{}
			write := func(k int64) {
				last[k]++
				if err := h.wait(h.mustPut(k, content(k, last[k])).Ticket, status.TierDisk); err != nil {
					t.Fatal(err)
				}
			}
			for k := range int64(keys) {
				write(k)
			}
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			right, told := 0, 0
			for range 12 {
				known := map[int64]uint64{}
				for k, v := range last {
					known[k] = v
				}
				reader, err := Open(r)
				if err != nil {
					t.Fatal(err)
				}
				from := newClient(t, reader, "h")
				for range 6 {
					write(rng.Int64N(keys))
					k := rng.Int64N(keys)
					got, _, err := from.get(k, size, operation.RestoreArgs{})
					var why *status.Error
					switch {
					case errors.As(err, &why) && why.Code == status.Dropped:
						told++
					case err != nil:
						t.Fatal(err)
					case !bytes.Equal(got, content(k, known[k])):
						t.Fatalf("checkpoint %d has bytes that are not those of version %d", k, known[k])
					default:
						right++
					}
				}
				shut(t, reader)
			}
			if right == 0 || told == 0 {
				t.Fatal(fmt.Sprint(right, " were right, ", told, " were told"))
			}
		})
	}
}
