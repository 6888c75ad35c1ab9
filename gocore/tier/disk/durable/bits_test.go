package durable

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/dataindex"
	"velocpy/gocore/tier/disk/segment"
)

// sound returns the checkpoints that are readable and match their checksums; lost returns those in the catalog that are not.
func sound(v *View) (good, lost []string) {
	for _, info := range v.State().Histories() {
		v.State().Each(info.ID, func(row catalog.Row) bool {
			name := slot{info.Name, row.Key}.String()
			p, err := slotOf(v.contents, &row, v.Space().Read)
			if err == nil && slices.Equal(sums(row.Layout, p), row.Sums) {
				if !bytes.Equal(p, version{row.Serial, row.Layout.Slot}.bytes()) {
					panic("other bytes have the same checksums")
				}
				good = append(good, name)
			} else {
				lost = append(lost, name)
			}
			return true
		})
	}
	slices.Sort(good)
	slices.Sort(lost)
	return good, lost
}

// batches returns the offsets of the frames of a catalog file, with the checkpoints that each puts.
func littleStore(t *testing.T) (*player, []string, map[string][2]int64) {
	p := newPlayer(1, func(m *vfs.Mem) vfs.FS { return m })
	p.prompt = true // one batch per checkpoint
	if !p.open() {
		t.Fatal("no store")
	}
	p.drafts.compression = codec.S2
	where := map[string][2]int64{} // range of the catalog that puts a checkpoint
	var names []string
	for i, size := range []int64{600, 0, 4097, 600, 20_000, 1, 600} {
		from := max(p.d.log.Bytes(), 56) // the file begins with a frame without checkpoints
		if !p.commit(p.put(fmt.Sprint("h", i%2), p.key(i), size)) {
			t.Fatal("not written")
		}
		name := slot{fmt.Sprint("h", i%2), p.key(i)}.String()
		names = append(names, name)
		where[name] = [2]int64{from, p.d.log.Bytes()}
	}
	if !p.close() {
		t.Fatal("not closed")
	}
	slices.Sort(names)
	return p, names, where
}

// A check finds every flipped bit that counts, and it costs only the checkpoints whose bytes are there. Some bits do not count: the padding in the last
// block of a checkpoint, and unused ranges between and after checkpoints.
func TestEveryBit(t *testing.T) {
	p, names, where := littleStore(t)
	files, err := p.mem.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	lies := map[string]held{}
	sources, contents := 0, map[catalog.Content]int{}
	view, err := Read(p.options(p.mem))
	if err != nil {
		t.Fatal(err)
	}
	for s := range p.sure.rows {
		id, _ := view.State().History(s.history)
		row, _ := view.State().Find(id, s.key)
		h := held{c: view.contents, row: row, bytes: map[int64]byte{}}
		claims, ok := view.identity.claims(&row)
		if !ok {
			t.Fatalf("%v lies nowhere", s)
		}
		for i, c := range claims {
			if c.end = c.from + row.Stored(); i > 0 {
				c.end = c.from + c.data + c.meta
			}
			p := make([]byte, c.end-c.from)
			if err := view.Space().Read(c.from, p); err != nil {
				t.Fatal(err)
			}
			for k, b := range p {
				h.bytes[c.from+int64(k)] = b
			}
		}
		lies[s.String()] = h
		sources += len(row.Sources)
		contents[row.Content]++
	}
	if _ = view.Close(); sources == 0 {
		t.Error("no checkpoint needs the object of another one")
	}
	if contents[catalog.EncodedSections] < 2 || contents[catalog.DifferenceSections] < 2 || contents[catalog.Encoded] == 0 {
		t.Errorf("%v: a content is missing", contents)
	}
	w, err := newWindowOf(nil, 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.close() }()
	counted, idle := 0, 0
	r := rand.New(rand.NewPCG(5, 5))
	for _, file := range files {
		info, err := p.mem.Stat(dir + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		first, stride := int64(0), int64(1)
		if tenth() {
			first, stride = turn()%211, 211
		}
		for bit := first; bit < info.Size*8; bit += stride {
			at := bit / 8
			var want []string // the checkpoints that are hit
			if strings.HasPrefix(file, "data-") {
				if at -= playedFront; at < 0 {
					// Of the zero bytes in a head or an index, one bit in a hundred is tried.
					kind, counts := Heading, at < headEnd-playedFront
					if at >= segment.HeadBytes-playedFront {
						kind, counts = Index, p.said(t, file, at+playedFront)
					}
					if !counts && r.IntN(100) > 0 {
						continue
					}
					// Of the bytes that count in an index, one bit of every fourth byte.
					if kind == Index && counts && (bit/8%4 != 0 || bit%8 != bit/32%8) {
						continue
					}
					if err := p.frontBit(file, bit, kind, counts || kind == Heading); err != nil {
						t.Fatalf("%s, bit %d: %v", file, bit, err)
					}
				}
				number := int64(file[len(file)-1] - '0')
				inHead := at < 0
				at += playedSegment * (number - 1)
				for name, h := range lies {
					if !inHead && h.counts(at, bit%8) {
						want = append(want, name)
					}
				}
				slices.Sort(want)
				// Of the bits that do not count, one in a thousand is tried.
				if !inHead && len(want) == 0 && r.IntN(1000) > 0 {
					continue
				}
				// Of those that do, one in eight in the largest checkpoint.
				if len(want) > 0 && len(lies[want[0]].bytes) > 4097 && bit%8 != at%8 {
					continue
				}
			}
			if err := flip(p.mem, dir+"/"+file, bit); err != nil {
				t.Fatal(err)
			}
			hit := len(want) > 0
			if err := p.oneBit(w, file, bit, want, names, where, &hit); err != nil {
				t.Fatalf("%s, bit %d: %v", file, bit, err)
			}
			if err := flip(p.mem, dir+"/"+file, bit); err != nil {
				t.Fatal(err)
			}
			if hit {
				counted++
			} else {
				idle++
			}
		}
	}
	t.Logf("%d bits that count, %d that do not", counted, idle)
	if counted < 50_000 && !tenth() || counted < 500 {
		t.Errorf("only %d bits count", counted)
	}
}

// held is a checkpoint with its bytes on disk: those of its sources, too.
type held struct {
	c     *contents
	row   catalog.Row
	bytes map[int64]byte // by offset in the space
}

// counts tells whether the plain bytes depend on a bit. All bits of a raw checkpoint count. A reader ignores zero bytes between the payloads of a container,
// and some in them, and the containers of a source that it does not need.
func (h *held) counts(at, bit int64) bool {
	if _, there := h.bytes[at]; !there {
		return false
	}
	if h.row.Content == catalog.Raw {
		return true
	}
	h.bytes[at] ^= 1 << bit
	defer func() { h.bytes[at] ^= 1 << bit }()
	p, err := slotOf(h.c, &h.row, func(off int64, p []byte) error {
		for k := range p {
			p[k] = h.bytes[off+int64(k)]
		}
		return nil
	})
	return err != nil || !slices.Equal(sums(h.row.Layout, p), h.row.Sums)
}

// headEnd is the end of the nonzero bytes in a head.
const headEnd = 64

// playedFront is the number of bytes before the segment in a data file.
var playedFront = front(madeWhole, playedSegment)

func front(m made, segment int64) int64 {
	i := m.identity(segment)
	return i.front()
}

// said tells whether a byte of a data file is in a frame of its index with a current checkpoint. The first call must come before any damage.
func (p *player) said(t *testing.T, file string, at int64) bool {
	t.Helper()
	all, known := p.frames[file]
	if !known {
		number, _ := segment.FileNumber(file)
		text := (&site{t: t, fs: p.mem}).read(file)
		for f := range (dataindex.File{Area: dataindex.Index, Store: p.store(t), Number: number}).Frames(text[segment.HeadBytes:playedFront], 0) {
			s, counts := catalog.New(), false
			if err := s.Apply(f.Payload); err != nil {
				t.Fatal(err)
			}
			s.EachIn(number, func(history string, row catalog.Row) bool {
				counts = counts || p.sure.rows[slot{history, row.Key}].serial == row.Serial
				return true
			})
			if counts {
				end := f.From + 64 + int64(len(f.Payload)) // the padding after it does not count
				all = append(all, run{segment.HeadBytes + f.From, segment.HeadBytes + end})
			}
		}
		p.frames[file] = all
	}
	return slices.ContainsFunc(all, func(r run) bool { return at >= r.from && at < r.end })
}

// store returns the store's id.
func (p *player) store(t *testing.T) [16]byte {
	t.Helper()
	o := p.options(p.mem)
	f, err := readIdentity(&o)
	if err != nil {
		t.Fatal(err)
	}
	return f.store
}

// frontBit flips one bit in the head or index of a data file: a check finds it if it counts, and nothing is lost.
func (p *player) frontBit(file string, bit int64, kind Kind, counts bool) (err error) {
	if err := flip(p.mem, dir+"/"+file, bit); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flip(p.mem, dir+"/"+file, bit)) }()
	view, err := Read(p.options(p.mem))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	c, err := view.Check(Scope{})
	if err != nil {
		return err
	}
	if _, err := c.Step(func() bool { return false }); err != nil {
		return err
	}
	all := c.Summary().Faults
	if !counts && len(all) == 0 {
		return nil
	}
	if len(all) != 1 || all[0].Kind != kind || all[0].File != file || !all[0].Harmless {
		return fmt.Errorf("%v", all)
	}
	return nil
}

// damaged returns the checkpoints whose bytes a check finds to be damaged. It reads them by the window.
func (v *View) damaged(w *window) (found []string, err error) {
	w.data = v.data
	c := &Check{v: v}
	if err := c.listFiles(v.contents); err != nil {
		return nil, err
	}
	for _, info := range v.State().Histories() {
		v.State().Each(info.ID, func(row catalog.Row) bool {
			if c.rowDamaged(w, doomed{history: info.ID, key: row.Key}) {
				found = append(found, slot{info.Name, row.Key}.String())
			}
			return true
		})
	}
	slices.Sort(found)
	return found, nil
}

// oneBit flips one bit of a store.
func (p *player) oneBit(w *window, file string, bit int64, want, names []string, where map[string][2]int64, hit *bool) error {
	view, err := Read(p.options(p.mem))
	if err != nil {
		return err
	}
	defer func() { _ = view.Close() }()
	good, lost := sound(view)
	switch {
	case file == "lock":
		*hit = false
	case file == identityName || file == copyName:
		*hit = true
		if len(view.bad) != 1 || len(good) != len(names) {
			return errors.New("not found")
		}
		return nil
	case strings.HasPrefix(file, "catalog-"):
		*hit = true
		for name, bytes := range where {
			if at := bit / 8; at >= bytes[0] && at < bytes[1] {
				want = append(want, name)
			}
		}
		if len(view.log.Damage) == 0 && view.log.Torn == 0 {
			return errors.New("not found")
		}
		if len(want) > 0 && view.Damage() == nil {
			return errors.New("not told")
		}
	case !slices.Equal(lost, want):
		return fmt.Errorf("%v are wrong, %v should be", lost, want)
	case bit%8 == bit/8%8: // one bit of each byte
		found, err := view.damaged(w)
		if err != nil || !slices.Equal(found, want) {
			return fmt.Errorf("%v are found, %v should be: %w", found, want, err)
		}
	}
	all := append(slices.Clone(good), want...)
	slices.Sort(all)
	if !slices.Equal(all, names) {
		return fmt.Errorf("%v are right, and %v should not be", good, want)
	}
	return nil
}
