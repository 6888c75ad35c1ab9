package durable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// serials returns the serials of all rows.
func serials(s *catalog.State) []uint64 {
	var all []uint64
	for _, h := range s.Histories() {
		s.EachKey(h.ID, func(_ model.Key, serial uint64) bool {
			all = append(all, serial)
			return true
		})
	}
	slices.Sort(all)
	return all
}

// written is a frame of the catalog, with its rows.
type written struct {
	from, end int64
	kind      uint32
	rows      []uint64
}

// framesOf reads a catalog file as docs/format.md describes it.
func framesOf(text []byte) (all []written) {
	for at := 0; at < len(text); {
		if string(text[at:at+8]) == "VELOFREE" {
			return append(all, written{from: int64(at), end: int64(len(text)), kind: roomKind})
		}
		kind, length := binary.LittleEndian.Uint32(text[at+4:]), int(binary.LittleEndian.Uint64(text[at+16:]))
		end := at + (40+length+7)/8*8
		f := written{from: int64(at), end: int64(end), kind: kind}
		for payload := text[at+40 : at+40+length]; (kind == snapshotKind || kind == batchKind) && len(payload) > 0; {
			size := binary.LittleEndian.Uint32(payload)
			for record := payload[4 : 4+size]; len(record) > 0; {
				if record[0] == 3 {
					f.rows = append(f.rows, binary.LittleEndian.Uint64(record[16:]))
				}
				record = record[8+binary.LittleEndian.Uint32(record[4:]):]
			}
			payload = payload[4+size:]
		}
		all, at = append(all, f), end
	}
	return all
}

const (
	completeKind = 3
	batchKind    = 4
	roomKind     = 100 // not a frame, but preallocated room
)

// hurt is a store whose medium is damaged, one place after the other.
type hurt struct {
	t      *testing.T
	m      *vfs.Mem
	o      Options
	files  map[string][]byte // of catalog and identity
	frames map[string][]written
	all    []uint64
	told   map[string]int
}

func newHurt(t *testing.T, rows, more int, closed bool) *hurt {
	t.Helper()
	m := vfs.NewMem(64 << 20)
	h := &hurt{t: t, m: m, o: Options{FS: m, Dir: dir, Capacity: int64(rows+more) * catalog.Block, SegmentBytes: 1 << 30, made: madeHeads}, told: map[string]int{}}
	d := filled(t, h.o, rows, more)
	if !closed { // the process dies
		h.m = m.Crash(rand.New(rand.NewPCG(1, 1)), 1)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	h.o.FS, h.files, h.frames = h.m, map[string][]byte{}, map[string][]written{}
	for serial := range uint64(rows + more) {
		h.all = append(h.all, serial+1)
	}
	names, err := h.m.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name != lockName && name != ballastName {
			h.files[name] = (&site{t: t, fs: h.m}).read(name)
		}
		if strings.HasPrefix(name, "catalog-") {
			h.frames[name] = framesOf(h.files[name])
		}
	}
	return h
}

// write writes bytes to a file, and bypasses all accounting.
func (h *hurt) write(name string, at int64, p []byte) {
	f, err := h.m.Open(dir+"/"+name, true, false)
	if err == nil {
		_, err = f.WriteAt(p, at)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// zeroed verifies a store with a zeroed range.
func (h *hurt) zeroed(name string, at, end int64) {
	h.t.Helper()
	was := h.files[name][at:end]
	h.write(name, at, make([]byte, end-at))
	h.try("zeroed", h.o, name, at, end)
	h.write(name, at, was)
}

// unreadable verifies a store with an unreadable range.
func (h *hurt) unreadable(name string, at, end int64) {
	h.t.Helper()
	o := h.o
	o.FS = vfs.NewFaulty(h.m, &vfs.Rule{Ops: vfs.OpRead, Name: name, From: at, To: end, Err: unix.EIO})
	h.try("unreadable", o, name, at, end)
}

// flipped verifies a store with a flipped bit.
func (h *hurt) flipped(name string, bit int64) {
	h.t.Helper()
	at := bit / 8
	h.write(name, at, []byte{h.files[name][at] ^ 1<<(bit%8)})
	h.try("flipped", h.o, name, at, at+1)
	h.write(name, at, h.files[name][at:at+1])
}

// try opens the store and verifies that it has lost the rows of the frames that were hit, that these are named, and that nothing else is lost. Damage
// elsewhere is noticed.
func (h *hurt) try(how string, o Options, name string, at, end int64) {
	h.t.Helper()
	same := how != "flipped" && !slices.ContainsFunc(h.files[name][at:end], func(b byte) bool { return b != 0 }) // unreadable bytes count as zero
	what := fmt.Sprintf("%s, bytes %d to %d %s", name, at, end, how)
	view, err := Read(o)
	if err != nil {
		h.t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = view.Close() }()
	var hit []written
	lost := map[uint64]bool{}
	for _, f := range h.frames[name] {
		if f.from < end && at < f.end && !same {
			hit = append(hit, f)
			for _, serial := range f.rows {
				lost[serial] = true
			}
		}
	}
	if got := serials(view.State()); len(got) != len(h.all)-len(lost) || slices.ContainsFunc(got, func(n uint64) bool { return lost[n] }) {
		h.t.Fatalf("%s: %d of %d rows are there, %d were hit: %v", what, len(got), len(h.all), len(lost), view.Damage())
	}
	if parts := slices.IndexFunc(hit, func(f written) bool { return f.kind != snapshotKind }); parts < 0 && len(hit) > 1 {
		h.t.Fatalf("%s: %d parts", what, len(hit))
	}
	faults := view.structure()
	harm := slices.ContainsFunc(faults, func(f Fault) bool {
		return !f.Harmless && f.File == name && slices.ContainsFunc(hit, func(w written) bool { return w.from <= f.Offset && f.Offset < w.end })
	})
	switch {
	case same && (harm || (len(faults) > 0) != (how == "unreadable")):
		h.t.Fatalf("%s: nothing is damaged, and there are %v", what, faults)
	case same:
		h.told["as it was"]++
	case harm != (view.Damage() != nil):
		h.t.Fatalf("%s: %v, but %v", what, faults, view.Damage())
	case harm:
		h.told["damage"]++
	case view.log.Torn > 0 && how != "unreadable" && hit[len(hit)-1].kind >= batchKind:
		h.told["torn end"]++
	case len(lost) > 0:
		h.t.Fatalf("%s: %d rows are lost, and nothing tells", what, len(lost))
	case len(faults) > 0:
		h.told["harmless"]++
	case how == "zeroed" && (name == copyName || len(hit) == 1 && hit[0].kind == completeKind): // as after a crash, and the other copies make up for it
		h.told["as if unwritten"]++
	default:
		h.t.Fatalf("%s: not noticed", what)
	}
}

// everywhere tries all sectors, or some of them.
func (h *hurt) everywhere(unit int64, some func(name string, at, size int64) bool) {
	h.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(h.files)) {
		size := int64(len(h.files[name]))
		for at := int64(0); at < size; at += unit {
			if some(name, at, size) {
				h.zeroed(name, at, min(at+unit, size))
				h.unreadable(name, at, min(at+unit, size))
			}
		}
	}
}

func every(string, int64, int64) bool { return true }

// long tells whether all places are tried.
func long() bool { return os.Getenv("VELOCPY_LONG") != "" }

// Any zeroed or unreadable sector of catalog and identity, and any flipped bit, costs the rows of the frame that it hits, and no others. VELOCPY_LONG=1
// tries every bit.
func TestEverySector(t *testing.T) {
	for name, some := range map[string]struct {
		rows, more int
		closed     bool
	}{
		"closed":              {500, 0, true},
		"killed":              {500, 0, false},
		"closed behind more":  {300, 20, true},
		"killed behind more":  {300, 20, false},
		"closed, of one row":  {1, 0, true},
		"killed, of one row":  {1, 0, false},
		"closed, of no row":   {0, 0, true},
		"closed behind a row": {0, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHurt(t, some.rows, some.more, some.closed)
			h.everywhere(512, every)
			h.everywhere(4096, every)
			stride := int64(61)
			switch {
			case long():
				stride = 1
			case tenth():
				stride = 509
			}
			for name, text := range h.files {
				for bit := int64(0); bit < int64(len(text))*8; bit += stride {
					h.flipped(name, bit)
				}
			}
			t.Log(h.told)
		})
	}
}

// The same in a store of 10^5 checkpoints. VELOCPY_LONG=1 tries every sector, and 10,000 bits, on all cores: half an hour of one core.
func TestEverySectorOfALargeStore(t *testing.T) {
	rows, tries, bits, parts := 100_000, 60, 20, 1
	switch {
	case long():
		bits, parts = 10_000, runtime.GOMAXPROCS(0)
	case tenth():
		rows, tries = 20_000, 20
	}
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			h := newHurt(t, rows, 0, true)
			r := rand.New(rand.NewPCG(3, uint64(part)))
			h.everywhere(512, func(name string, at, size int64) bool {
				if long() {
					return at/512%int64(parts) == int64(part)
				}
				few := at < 8192 || size-at < 8192 // the representative places
				return few && at%1024 == 0 || r.Int64N(size/512) < int64(tries)
			})
			names := slices.Sorted(maps.Keys(h.files))
			for range bits / parts {
				name := names[r.IntN(len(names))]
				h.flipped(name, r.Int64N(int64(len(h.files[name]))*8))
			}
			most, bytes := 0, 0
			for _, name := range names {
				bytes += len(h.files[name])
				for _, f := range h.frames[name] {
					most = max(most, len(f.rows))
				}
			}
			t.Logf("part %d of %d: %d rows in %d bytes, at most %d in a frame: %v", part, parts, rows, bytes, most, h.told)
			if most > 200 {
				t.Errorf("%d rows in a frame", most)
			}
		})
	}
}
