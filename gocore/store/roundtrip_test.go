package store

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

func TestHistoryLargerThanTheHostComesBackExactly(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 64 << 10, 100_001, 1<<20 + 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			c := cached(4<<20, 256<<20, nil)
			c.Path = t.TempDir()
			s := open(t, c)
			h := newClient(t, s, "h")
			n := 64
			for k := range n {
				h.mustPut(int64(k), random(size, uint64(k)))
			}
			for k := n - 1; k >= 0; k-- {
				h.mustGet(int64(k), random(size, uint64(k)), operation.RestoreArgs{Last: true})
			}
			st, err := s.Stats()
			if err != nil {
				t.Fatal(err)
			}
			if st.Restores.Count != int64(n) || st.Consumed != int64(n) || st.Captures != int64(n) {
				t.Fatalf("%+v", st)
			}
			drained(t, s)
		})
	}
}

// shapes are stores that all have to keep the same promises.
var shapes = map[string]func() config.Config{
	"host":        func() config.Config { return cached(8<<20, 0, nil) },
	"disk":        func() config.Config { return cached(0, 16<<20, vfs.NewMem(64<<20)) },
	"host+disk":   func() config.Config { return cached(256<<10, 16<<20, vfs.NewMem(64<<20)) },
	"not direct":  func() config.Config { c := cached(256<<10, 16<<20, vfs.NewMem(64<<20)); c.Direct = false; return c },
	"eager":       func() config.Config { c := cached(256<<10, 16<<20, vfs.NewMem(64<<20)); c.Flush = "eager"; return c },
	"no checksum": func() config.Config { c := cached(256<<10, 16<<20, vfs.NewMem(64<<20)); c.Checksum = false; return c },
	"always":      func() config.Config { c := cached(256<<10, 16<<20, vfs.NewMem(64<<20)); c.Verify = "always"; return c },
	"off":         func() config.Config { c := cached(256<<10, 16<<20, vfs.NewMem(64<<20)); c.Verify = "off"; return c },
}

func inAllShapes(t *testing.T, f func(t *testing.T, s *Store)) {
	for name, c := range shapes {
		t.Run(name, func(t *testing.T) { f(t, open(t, c())) })
	}
}

// wide returns the regions of a checkpoint, of several sizes, with gaps between them.
func wide(sizes []int, seed uint64) (regions []model.Region, bytes [][]byte, slot int64) {
	for i, n := range sizes {
		p := random(n, seed+uint64(i)*1000)
		regions, bytes = append(regions, region(p, slot)), append(bytes, p)
		slot += (int64(n) + 63) / 64 * 64
	}
	return regions, bytes, slot
}

func TestRegionsComeBackTogetherAndAlone(t *testing.T) {
	sizes := []int{0, 1, 4096, 100_000, 0, 77, 65536, 0}
	for _, stays := range []bool{false, true} {
		t.Run(fmt.Sprint("stays ", stays), func(t *testing.T) {
			inAllShapes(t, func(t *testing.T, s *Store) {
				h := newClient(t, s, "h")
				for k := range int64(20) {
					regions, _, slot := wide(sizes, uint64(k))
					a := operation.CheckpointArgs{Key: model.Key{Number: k}, Regions: regions, Layout: []byte("wide"), Slot: slot, FD: h.fd, Tier: status.TierNone, SourceStays: stays}
					var out operation.Outcome
					op, code, err := h.h.Checkpoint(&a, &out)
					if err == nil {
						err = drive(t, op, code, h.fd, &out)
					}
					if err == nil && stays {
						err = h.wait(out.Ticket, status.TierNone)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				for k := range int64(20) {
					checkWide(t, h, k, sizes)
				}
				drained(t, s)
			})
		})
	}
}

// checkWide restores some regions into arrays, some as a lease, and all.
func checkWide(t *testing.T, h *client, k int64, sizes []int) {
	t.Helper()
	regions, want, _ := wide(sizes, uint64(k))
	for _, pick := range [][]int32{{3}, {0, 1, 5}, {}, {7}, {0, 1, 2, 3, 4, 5, 6, 7}} {
		l, out, err := h.lease(k, operation.RestoreArgs{Select: pick})
		if err != nil {
			t.Fatalf("checkpoint %d, regions %v: %v", k, pick, err)
		}
		got := make([][]byte, len(pick))
		var into []model.Region
		for j, i := range pick {
			got[j] = make([]byte, len(want[i]))
			into = append(into, region(got[j], 0))
			at := regions[i].Offset
			if !bytes.Equal(view(l, int(out.Slot))[at:at+int64(len(want[i]))], want[i]) {
				t.Fatalf("checkpoint %d, region %d of lease %v differs", k, i, pick)
			}
		}
		release(t, l)
		a := operation.RestoreArgs{Key: model.Key{Number: k}, Select: pick, Into: into, FD: h.fd}
		op, code, err := h.h.Restore(&a, &out)
		if err == nil {
			err = drive(t, op, code, h.fd, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		for j, i := range pick {
			if !bytes.Equal(got[j], want[i]) {
				t.Fatalf("checkpoint %d, region %d differs", k, i)
			}
		}
	}
}

func TestStridedRegions(t *testing.T) {
	inAllShapes(t, func(t *testing.T, s *Store) {
		h := newClient(t, s, "h")
		for _, stays := range []bool{false, true} {
			// Every third column of a matrix of float32, in reverse order.
			rows, cols := 300, 101
			from := random(rows*cols*3*4, 1)
			last := unsafe.Add(unsafe.Pointer(&from[0]), (cols-1)*12)
			mem := model.Strided{Base: last, Item: 4, Shape: []int64{int64(rows), int64(cols)}, Strides: []int64{int64(cols * 12), -12}}
			n := int64(rows * cols * 4)
			a := operation.CheckpointArgs{
				Regions: []model.Region{{Mem: mem, Offset: 128, Bytes: n}}, Layout: []byte("strided"), Slot: n + 200, FD: h.fd, Tier: status.TierNone, SourceStays: stays,
			}
			var out operation.Outcome
			op, code, err := h.h.Checkpoint(&a, &out)
			if err == nil {
				err = drive(t, op, code, h.fd, &out)
			}
			if err == nil {
				err = h.wait(out.Ticket, status.TierNone)
			}
			if err != nil {
				t.Fatal(err)
			}
			to := make([]byte, len(from))
			back := mem
			back.Base = unsafe.Add(unsafe.Pointer(&to[0]), (cols-1)*12)
			r := operation.RestoreArgs{Into: []model.Region{{Mem: back, Bytes: n}}, FD: h.fd}
			op, code, err = h.h.Restore(&r, &out)
			if err == nil {
				err = drive(t, op, code, h.fd, &out)
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range from {
				if want := from[i]; i%12 >= 4 && to[i] != 0 || i%12 < 4 && to[i] != want {
					t.Fatalf("byte %d differs", i)
				}
			}
		}
		drained(t, s)
	})
}

func TestTenThousandRegions(t *testing.T) {
	inAllShapes(t, func(t *testing.T, s *Store) {
		h := newClient(t, s, "h")
		sizes := make([]int, 10_000)
		for i := range sizes {
			sizes[i] = i % 7
		}
		regions, want, slot := wide(sizes, 5)
		a := operation.CheckpointArgs{Regions: regions, Layout: []byte("many"), Slot: slot, FD: h.fd, Tier: status.TierNone}
		var out operation.Outcome
		op, code, err := h.h.Checkpoint(&a, &out)
		if slot > 256<<10 && s.Host != nil && s.Disk != nil && code == status.Pending {
			t.Log("spilled")
		}
		if err == nil {
			err = drive(t, op, code, h.fd, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		l, out, err := h.lease(0, operation.RestoreArgs{})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range want {
			at := regions[i].Offset
			if !bytes.Equal(view(l, int(out.Slot))[at:at+int64(len(p))], p) {
				t.Fatalf("region %d differs", i)
			}
		}
		release(t, l)
		drained(t, s)
	})
}

func TestMetaKeysAndLayouts(t *testing.T) {
	inAllShapes(t, func(t *testing.T, s *Store) {
		h := newClient(t, s, "h\x00/\xff")
		names := []string{"", "a/b", "nul\x00l", "nul\x00m", "\U0001F30A", "\xed\xa0\x80"}
		for i, name := range names {
			p := random(10+i, uint64(i))
			a := operation.CheckpointArgs{
				Key: model.Key{Text: name, IsText: true}, Regions: []model.Region{region(p, 0)}, Layout: []byte(fmt.Sprint(len(p))), Slot: int64(len(p)),
				Meta: []byte("meta of " + name), FD: h.fd, Tier: status.TierNone,
			}
			if _, err := h.write(&a); err != nil {
				t.Fatal(err)
			}
		}
		keys, err := h.h.Keys()
		if err != nil || !slices.EqualFunc(keys, names, func(k model.Key, n string) bool { return k.IsText && k.Text == n }) {
			t.Fatalf("%q, %v", keys, err)
		}
		for i, name := range names {
			key := model.Key{Text: name, IsText: true}
			info, err := h.h.Lookup(key)
			if err != nil || info.Payload != int64(10+i) || info.Meta != int64(len("meta of "+name)) {
				t.Fatalf("%+v, %v", info, err)
			}
			text, err := s.Layout(info.Layout)
			if err != nil || text != fmt.Sprint(10+i) {
				t.Fatalf("%q, %v", text, err)
			}
			var out operation.Outcome
			op, code, err := h.h.Restore(&operation.RestoreArgs{Key: key, Lease: true, FD: h.fd, Last: true}, &out)
			if err == nil {
				err = drive(t, op, code, h.fd, &out)
			}
			if err != nil {
				t.Fatal(err)
			}
			l := out.Lease
			if l.Meta() != "meta of "+name || l.Layout.Text != text || !bytes.Equal(view(l, 10+i), random(10+i, uint64(i))) {
				t.Fatalf("lease of %q: %q %q", name, l.Meta(), l.Layout.Text)
			}
			if !l.Writable {
				t.Error("a lease for the last time is the caller's")
			}
			if err := l.Take(); err != nil {
				t.Error(err)
			}
			view(l, 1)[0]++
			release(t, l)
			eventually(t, "the layout of a consumed checkpoint is forgotten", func() bool {
				_, err := s.Layout(info.Layout)
				return err != nil
			})
		}
		drained(t, s)
	})
}

func TestAutoKeysAreUnused(t *testing.T) {
	s := open(t, shapes["host"]())
	h := newClient(t, s, "h")
	h.mustPut(3, random(8, 0))
	seen := map[int64]bool{3: true}
	for i := range 10 {
		p := random(8, uint64(i))
		out, err := h.putArgs(-5, p, operation.CheckpointArgs{AutoKey: true})
		if err != nil || seen[out.Key.Number] || out.Key.IsText {
			t.Fatalf("key %v, %v", out.Key, err)
		}
		seen[out.Key.Number] = true
		h.mustGet(out.Key.Number, p, operation.RestoreArgs{})
	}
	if n, err := h.h.Len(); n != 11 || err != nil {
		t.Fatal(n, err)
	}
}

func TestWritingAgainReplaces(t *testing.T) {
	inAllShapes(t, func(t *testing.T, s *Store) {
		h := newClient(t, s, "h")
		for i := range 200 {
			n := 1 + i*977%50_000
			h.mustPut(int64(i%3), random(n, uint64(i)))
			h.mustGet(int64(i%3), random(n, uint64(i)), operation.RestoreArgs{})
		}
		if n, _ := h.h.Len(); n != 3 {
			t.Fatal(n)
		}
		drained(t, s)
	})
}

func TestLargerThanTheHostGoesPastIt(t *testing.T) {
	for _, stays := range []bool{false, true} {
		t.Run(fmt.Sprint("stays ", stays), func(t *testing.T) { goPast(t, stays) })
	}
}

func goPast(t *testing.T, stays bool) {
	s := open(t, cached(1<<20, 64<<20, vfs.NewMem(128<<20)))
	h := newClient(t, s, "h")
	p := random(20<<20+17, 3)
	out, err := h.putArgs(1, p, operation.CheckpointArgs{SourceStays: stays})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.wait(out.Ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	info, err := h.h.Lookup(model.Key{Number: 1})
	if err != nil || info.Tiers != 1<<status.TierDisk || info.Ready {
		t.Fatalf("%+v %v", info, err)
	}
	h.mustGet(1, p, operation.RestoreArgs{})
	l := h.mustLease(1, operation.RestoreArgs{})
	if !bytes.Equal(view(l, len(p)), p) {
		t.Fatal("the lease differs")
	}
	h.drop(1)
	if !bytes.Equal(view(l, len(p)), p) {
		t.Fatal("the lease differs after drop")
	}
	release(t, l)
	drained(t, s)
}

func TestLargerThanEverythingIsRefusedAtOnce(t *testing.T) {
	inAllShapes(t, func(t *testing.T, s *Store) {
		h := newClient(t, s, "h")
		h.mustPut(1, random(1000, 1))
		p := make([]byte, 20<<20)
		for _, a := range []operation.CheckpointArgs{{}, {Patient: true}, {SourceStays: true}, {SourceStays: true, Patient: true}} {
			op, code, err := h.pending(1, p, a, &operation.Outcome{})
			if code != status.TierFull {
				t.Fatalf("%v %v %v", op, code, err)
			}
			wants(t, err, status.TierFull)
		}
		h.mustGet(1, random(1000, 1), operation.RestoreArgs{})
		drained(t, s)
	})
}

func TestTierOfASchedule(t *testing.T) {
	s := open(t, cached(1<<20, 16<<20, vfs.NewMem(32<<20)))
	h := newClient(t, s, "h")
	p := random(100_000, 1)
	if _, err := h.putArgs(1, p, operation.CheckpointArgs{Tier: status.TierDisk}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it comes down by itself", func() bool {
		i, err := h.h.Lookup(model.Key{Number: 1})
		return err == nil && i.Tiers&(1<<status.TierDisk) != 0
	})
	h.mustGet(1, p, operation.RestoreArgs{})
}

// A request for a tier that the store does not have is refused before anything changes. The error names the tiers that exist.
func TestTierThatIsNotThere(t *testing.T) {
	s := open(t, cached(1<<20, 0, nil))
	h := newClient(t, s, "h")
	p := random(1000, 1)
	h.mustPut(1, p)
	for tier, code := range map[int]status.Code{
		status.TierDisk: status.Unavailable, status.TierArchive: status.Unavailable, 17: status.Invalid, -2: status.Invalid,
	} {
		_, err := h.putArgs(1, random(1000, 2), operation.CheckpointArgs{Tier: tier})
		if e := wants(t, err, code); !strings.Contains(e.Message(), "the store has host") && !strings.Contains(e.Message(), "it has host") {
			t.Errorf("tier %d: %q does not name the tiers there are", tier, e.Message())
		}
	}
	h.mustGet(1, p, operation.RestoreArgs{})
	drained(t, s)
}
