package cuda_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/cuda/kernel"
	"velocpy/gocore/device/devicetest"
	"velocpy/gocore/device/lineage"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

// The differences of any checkpoints are those of package dedup, byte for byte.
func TestDedupOfAnyHistory(t *testing.T) {
	d := fresh(t, double.Config{Memory: 2 << 30, Delay: time.Microsecond, Seed: 3})
	dev, err := cuda.Open(d, 0, image)
	if err != nil {
		t.Fatal(err)
	}
	dev.UseDedup(func() ([]byte, error) { return image, nil })
	t.Cleanup(func() { proper(t, d) })
	devicetest.AnyHistory(t, dev)
}

// twins are a lineage on a device and the same one on the host, and a region of its checkpoints.
type twins struct {
	*rig
	options lineage.Options
	there   *lineage.Lineage
	here    *dedup.Lineage
	data    []byte
	number  uint32
}

const twinsBytes = 100_000

func (r *rig) twins() *twins {
	r.t.Helper()
	w := &twins{rig: r, data: make([]byte, twinsBytes), options: lineage.Options{Method: difference.Tree, Chunk: 128, Seed: 5, MaxAge: 1}}
	_, _ = rand.NewChaCha8([32]byte{4}).Read(w.data)
	w.restart()
	_, w.options.Entries = w.here.Recorded()
	there, err := lineage.New(w.options, r.arena.Base())
	if err != nil {
		r.t.Fatal(err)
	}
	w.there = there
	return w
}

// restart makes the lineage on the host anew.
func (w *twins) restart() {
	w.t.Helper()
	o, err := w.options, error(nil)
	if w.here, err = dedup.New(dedup.Options{Method: o.Method, Chunk: o.Chunk, Seed: o.Seed, MaxAge: o.MaxAge, Record: record.Memory(2000)}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *twins) memory() lineage.Memory {
	at := w.arena.Base()
	return lineage.Memory{Digests: at + 2<<20, Scratch: at + 3<<20, Result: at + 6<<20}
}

func (w *twins) regions() []lineage.Region {
	return []lineage.Region{{Name: "a", At: w.arena.Base() + 1<<20, Bytes: twinsBytes}}
}

// begin changes some bytes, and queues the de-duplication of the next checkpoint.
func (w *twins) begin() (*lineage.Checkpoint, error) {
	w.t.Helper()
	for i := 0; i < len(w.data); i += 9973 {
		w.data[i]++
	}
	w.number += 2 // so that the record gets too old
	copy(w.driver.Bytes(w.regions()[0].At, twinsBytes), w.data)
	m := w.memory()
	if need, err := w.there.Need(w.number, w.regions()); err == nil && need.Digests == 0 {
		m.Digests = 0
	}
	return w.there.Dedup(w.lane, w.number, w.regions(), m)
}

// checkpoint makes the next checkpoint on both sides, and compares the differences.
func (w *twins) checkpoint() {
	w.t.Helper()
	k, err := w.begin()
	if err != nil {
		w.t.Fatal(err)
	}
	w.wait()
	at, n := k.Metadata()
	result := bytes.Clone(w.driver.Bytes(w.memory().Result, at+n))
	got, _, err := k.Finish(result[at:], result[:k.Counts().Bytes])
	if err != nil {
		w.t.Fatal(err)
	}
	want, _, err := w.here.Dedup(w.number, []dedup.Region{{Name: "a", Bytes: w.data}})
	if err != nil {
		w.t.Fatal(err)
	}
	a, gotErr := got.Append(nil)
	b, wantErr := want.Append(nil)
	if gotErr != nil || wantErr != nil || !bytes.Equal(a, b) {
		w.t.Fatalf("checkpoint %d: %v, %v, or another difference", w.number, gotErr, wantErr)
	}
}

// deduplication is one of arbitrary bytes.
func (r *rig) deduplication() *device.Deduplication {
	base := r.arena.Base()
	return &device.Deduplication{
		Method: difference.Tree, Chunk: 256, Fresh: true, Entries: 10, Record: base, Scratch: base + 1<<20, Result: base + 2<<20,
		Regions: []device.DedupRegion{{At: base + 3<<20, Bytes: 10_000, Leaves: base + 4<<20}},
	}
}

// A device that never de-duplicates does not load the kernels for it, and one that does loads them once.
func TestDedupIsLoadedByTheFirstUse(t *testing.T) {
	r := open(t, double.Config{})
	asked := 0
	r.dev.UseDedup(func() ([]byte, error) { asked++; return image, nil })
	if n := r.driver.Calls("LoadModule"); n != 1 || asked != 0 {
		t.Fatalf("%d modules, %d reads before the first use", n, asked)
	}
	w := r.twins()
	for range 3 {
		w.checkpoint()
	}
	if n := r.driver.Calls("LoadModule"); n != 2 || asked != 1 {
		t.Errorf("%d modules, %d reads", n, asked)
	}
	r.close()
}

// Without the kernels the device works, a Dedup says which file is missing, and the lineage is as before.
func TestWithoutDedup(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "/nowhere/velocpy_dedup.fatbin", Err: fs.ErrNotExist}
	for what, load := range map[string]func() ([]byte, error){
		"not told":   nil,
		"no file":    func() ([]byte, error) { return nil, missing },
		"empty file": func() ([]byte, error) { return nil, nil },
	} {
		r := open(t, double.Config{})
		r.dev.UseDedup(load)
		w := r.twins()
		_, err := w.begin()
		if !errors.Is(err, device.ErrDedup) || w.there.Changed() || r.dev.Lost() != nil {
			t.Errorf("%s: %v", what, err)
		}
		if what == "no file" && !strings.Contains(err.Error(), missing.Path) {
			t.Errorf("the file is not in %q", err)
		}
		r.dev.UseDedup(func() ([]byte, error) { return image, nil })
		w.checkpoint()
		r.close()
	}
}

// Kernels that do not load are as none, unless the context is lost.
func TestDedupThatDoesNotLoad(t *testing.T) {
	for _, c := range []struct {
		call string
		code cuda.Code
		skip int
		lost bool
	}{
		{"LoadModule", cuda.NoBinary, 0, false}, {"Function", cuda.NotFound, 0, false},
		{"Function", cuda.NotFound, len(kernel.DedupNames()) - 1, false}, {"LoadModule", cuda.IllegalAddress, 0, true},
	} {
		r := open(t, double.Config{})
		w := r.twins()
		r.driver.Fail(c.call, c.code, c.skip, 1)
		_, err := w.begin()
		if !cuda.Is(err, c.code) || errors.Is(err, device.ErrLost) != c.lost || errors.Is(err, device.ErrDedup) == c.lost || w.there.Changed() != c.lost {
			t.Errorf("%s fails with %d: %v", c.call, c.code, err)
		}
		if !c.lost {
			r.close()
		}
	}
}

// A stream that is being captured takes no work, and the lineage is as before.
func TestDedupInACapturedStream(t *testing.T) {
	r := open(t, double.Config{})
	w := r.twins()
	w.checkpoint()
	stream := r.driver.Foreign(0, false)
	r.driver.SetCapturing(stream, true)
	m := w.memory()
	for _, digests := range []device.Address{0, m.Digests + 256<<10} { // in place, and where digests are moved first
		m.Digests = digests
		_, err := w.there.Dedup(r.dev.Borrow(uint64(stream)), w.number+1, w.regions(), m)
		if !errors.Is(err, device.ErrRecording) || w.there.Changed() {
			t.Errorf("%v", err)
		}
	}
	r.driver.SetCapturing(stream, false)
	w.checkpoint()
	r.close()
}

// Each call of the driver may fail. The lineage takes no checkpoint then before it is rebased, and is the one on the host afterwards.
func TestDedupCallsFail(t *testing.T) {
	r := open(t, double.Config{})
	w := r.twins()
	w.checkpoint()
	w.checkpoint()
	before := r.driver.Calls("Launch")
	w.checkpoint() // which sweeps the record
	launches := r.driver.Calls("Launch") - before
	if launches < 20 {
		t.Fatalf("%d launches", launches)
	}
	fail := func(call string, skip int) {
		t.Helper()
		r.driver.Fail(call, cuda.NotSupported, skip, 1)
		if k, err := w.begin(); !cuda.Is(err, cuda.NotSupported) || k != nil || !w.there.Changed() {
			t.Fatalf("%s fails after %d: %v", call, skip, err)
		}
		r.wait()
		if _, err := w.there.Need(w.number+1, w.regions()); !errors.Is(err, lineage.ErrChanged) {
			t.Fatalf("%s failed after %d: then %v", call, skip, err)
		}
		w.restart()
		if err := w.there.Rebase(); err != nil {
			t.Fatal(err)
		}
	}
	for skip := range launches {
		fail("Launch", skip%launches)
		w.checkpoint()
		if skip%5 == 0 {
			w.checkpoint()
			w.checkpoint()
		}
	}
	fail("Copy", 0)
	w.checkpoint()
	r.close()
}

// A loss during the work is told by the event behind it. The lineage is dropped with the device.
func TestDedupOfALostDevice(t *testing.T) {
	for after := 1; after < 20; after += 3 {
		r := open(t, double.Config{})
		w := r.twins()
		w.checkpoint()
		r.driver.Lose(0, after)
		k, err := w.begin()
		if err == nil {
			var m device.Event
			if m, err = r.lane.Event(); err == nil {
				err = m.Wait()
			}
			k.Drop()
		}
		if !errors.Is(err, device.ErrLost) || !w.there.Changed() {
			t.Errorf("lost after %d: %v", after, err)
		}
	}
}
