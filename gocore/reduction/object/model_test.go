package object

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/regions"
)

var methods = []difference.Method{difference.Full, difference.Basic, difference.List, difference.Tree, difference.Runs}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// tier is the model of a store: it keeps an object as long as its checkpoint is live, or a live checkpoint lists it.
type tier struct {
	t           fataler
	writer      *Writer
	options     Options
	objects     map[uint32][]byte
	differences map[uint32]*model.Difference // of all objects
	plain       map[uint32][]dedup.Region    // of live checkpoints
	room        *regions.Room
	forgotten   map[uint32]bool
	random      *rand.Rand
	copies      int // goroutines
	compression codec.Compression
	unreadable  map[uint32][]model.Span // of the objects
}

func newTier(t fataler, o Options) *tier {
	w, err := NewWriter(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	compression := codec.Compression(max(int64(o.Lineage%8)-4, 0))
	if o.References {
		compression = codec.NoCompression
	}
	return &tier{
		t: t, writer: w, options: o, objects: map[uint32][]byte{}, differences: map[uint32]*model.Difference{}, plain: map[uint32][]dedup.Region{},
		room: new(regions.Room), forgotten: map[uint32]bool{}, random: rand.New(rand.NewPCG(o.Lineage, 7)), copies: 1 + int(o.Lineage%3),
		compression: compression,
	}
}

func (s *tier) close() { s.room.Free() }

var kinds = []codec.Kind{codec.Int8, codec.Float32, codec.BFloat16, codec.Float64}

// draft de-duplicates a checkpoint, and verifies what holds for every draft.
func (s *tier) draft(checkpoint []dedup.Region) *Draft {
	s.t.Helper()
	known := s.writer.Known()
	d, err := s.writer.Draft(checkpoint)
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	if len(d.Sources()) > s.options.MaxSources && s.options.MaxSources > 0 || len(d.Sources()) > DefaultSources && s.options.MaxSources == 0 {
		s.t.Fatalf("checkpoint %d has %d sources", d.Number(), len(d.Sources()))
	}
	for _, n := range d.Sources() {
		if s.forgotten[n] || !slices.Contains(known, n) || s.objects[n] == nil {
			s.t.Fatalf("checkpoint %d has the source %d, which was forgotten or is not known: %d", d.Number(), n, known)
		}
	}
	return d
}

// write writes a draft's object into memory.
func (s *tier) write(d *Draft, most int64) ([]byte, *model.Difference, error) {
	var sources []model.Source
	for _, n := range d.Sources() {
		o := s.differences[n]
		sources = append(sources, model.Source{Number: n, Data: o.Data, Meta: o.Meta, Offset: int64(n) * 7})
	}
	choices := make([]regions.Choice, len(d.regions))
	for i := range choices {
		choices[i] = regions.Choice{Kind: kinds[i%len(kinds)], Modes: codec.AllModes}
	}
	var object []byte
	sink := func(p []byte) error {
		if len(p) == 0 || len(p)%regions.BlockBytes != 0 {
			return fmt.Errorf("a sink gets %d bytes", len(p))
		}
		object = append(object, p...)
		return nil
	}
	options := regions.Options{Goroutines: s.copies, Room: s.room, Compression: s.compression}
	if of := d.Reference(sources); of != nil {
		names, spans, _ := slot(d.regions)
		r, err := Open(of, names, spans, s.reading(of))
		if err != nil {
			s.t.Fatalf("the reference %d of checkpoint %d: %v", of.Number, d.Number(), err)
		}
		options.Reference = r.Reference
	}
	described, err := d.Write(sources, choices, most, sink, options)
	return object, described, err
}

// add makes the next checkpoint, and returns its number.
func (s *tier) add(checkpoint []dedup.Region) uint32 {
	s.t.Helper()
	d := s.draft(checkpoint)
	object, described, err := s.write(d, 1<<40)
	if err != nil {
		s.t.Fatalf("checkpoint %d: %v", d.Number(), err)
	}
	if err := described.Check(); err != nil || described.Number != d.Number() || described.Lineage != s.options.Lineage {
		s.t.Fatalf("checkpoint %d: %+v: %v", d.Number(), described, err)
	}
	if s.random.IntN(4) == 0 { // the bytes do not depend on the number of goroutines
		s.copies = 4 - s.copies
		if again, same, err := s.write(d, described.Bytes()); err != nil || !bytes.Equal(object, again) || !reflect.DeepEqual(same, described) {
			s.t.Fatalf("checkpoint %d: another object, %+v: %v", d.Number(), same, err)
		}
	}
	if _, _, err := s.write(d, described.Bytes()-1); !errors.Is(err, regions.ErrLarge) {
		s.t.Fatalf("checkpoint %d: one byte less than it has: %v", d.Number(), err)
	}
	n := described.Bytes()
	if blocks := (n + regions.BlockBytes - 1) / regions.BlockBytes * regions.BlockBytes; int64(len(object)) != blocks || slices.Max(append(object[n:], 0)) > 0 {
		s.t.Fatalf("checkpoint %d: %d bytes for an object of %d, or not zero behind it", d.Number(), len(object), n)
	}
	if bound := d.Metadata(); described.Meta > bound {
		s.t.Fatalf("checkpoint %d: %d bytes of metadata, bounded by %d", d.Number(), described.Meta, bound)
	}
	s.objects[d.Number()], s.differences[d.Number()], s.plain[d.Number()] = object[:n:n], described, clone(checkpoint)
	s.writer.Wrote(described)
	return d.Number()
}

func clone(list []dedup.Region) []dedup.Region {
	list = slices.Clone(list)
	for i := range list {
		list[i].Bytes = bytes.Clone(list[i].Bytes)
	}
	return list
}

// live are the live checkpoints, ascending.
func (s *tier) live() []uint32 { return slices.Sorted(maps.Keys(s.plain)) }

// drop makes a checkpoint not live any more, removes the objects that no live checkpoint needs, and forgets them.
func (s *tier) drop(number uint32) {
	delete(s.plain, number)
	needed := map[uint32]bool{}
	for n := range s.plain {
		needed[n] = true
		for _, source := range s.differences[n].Sources {
			needed[source.Number] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(s.objects)) {
		if !needed[n] {
			s.forget(n)
			delete(s.objects, n)
			delete(s.differences, n)
		}
	}
}

func (s *tier) forget(n uint32) {
	s.writer.Forget(n)
	s.forgotten[n] = true
	if slices.Contains(s.writer.Known(), n) {
		s.t.Fatalf("%d is known, and was forgotten", n)
	}
}

// slot lays regions out with gaps.
func slot(list []dedup.Region) (names []string, spans []model.Span, bytes int64) {
	for _, r := range list {
		names = append(names, r.Name)
		spans = append(spans, model.Span{Offset: bytes, Bytes: int64(len(r.Bytes))})
		bytes = (bytes + int64(len(r.Bytes)) + 63) / 64 * 64
	}
	return names, spans, bytes
}

// reading returns the function that reads the objects of a checkpoint, and no others.
func (s *tier) reading(d *model.Difference) Read {
	return func(source int, at int64, p []byte) error {
		number, bytes := d.Number, d.Bytes()
		if source != Own {
			number, bytes = d.Sources[source].Number, d.Sources[source].Bytes()
		}
		object, ok := s.objects[number]
		if !ok || at < 0 || at+int64(len(p)) > bytes || bytes != int64(len(object)) {
			return fmt.Errorf("%w: object %d, %d bytes at %d", errUnkept, number, len(p), at)
		}
		for _, bad := range s.unreadable[number] {
			if at < bad.End() && bad.Offset < at+int64(len(p)) {
				return errUnreadable
			}
		}
		copy(p, object[at:])
		return nil
	}
}

var errUnreadable = errors.New("a read of bytes that are kept")

var errUnkept = errors.New("a read of bytes that are not kept")

func (s *tier) open(number uint32) (*Reader, []model.Span, int64) {
	s.t.Helper()
	d := s.differences[number]
	names, spans, n := slot(s.plain[number])
	r, err := Open(d, names, spans, s.reading(d))
	if err != nil {
		s.t.Fatalf("checkpoint %d: %v", number, err)
	}
	return r, spans, n
}

// whole restores a checkpoint.
func (s *tier) whole(number uint32) {
	s.t.Helper()
	r, spans, n := s.open(number)
	s.decode(r, number, spans, n, slices.DeleteFunc(slices.Clone(spans), func(s model.Span) bool { return s.Bytes == 0 && s.Offset%3 == 0 }))
}

// parts restores some parts of a checkpoint, and reads others.
func (s *tier) parts(number uint32) {
	s.t.Helper()
	r, spans, n := s.open(number)
	var wanted []model.Span
	for _, span := range spans {
		for at := span.Offset; at < span.End(); {
			from := at + s.random.Int64N(1+span.Bytes/2)
			end := min(from+1+s.random.Int64N(1+span.Bytes/2), span.End())
			if at = end; from < end {
				wanted = append(wanted, model.Span{Offset: from, Bytes: end - from})
			}
		}
	}
	s.decode(r, number, spans, n, wanted)
	for i, span := range spans {
		for range 3 {
			from := s.random.Int64N(span.Bytes + 1)
			p := make([]byte, s.random.Int64N(span.Bytes-from+1))
			if err := r.Read(i, from, p); err != nil || !bytes.Equal(p, s.plain[number][i].Bytes[from:][:len(p)]) {
				s.t.Fatalf("checkpoint %d: %d bytes from %d of region %d are wrong: %v", number, len(p), from, i, err)
			}
		}
	}
}

// decode decodes what is wanted, and verifies that it is right, that each byte arrives once, and that no other one of the slot is written that no region has.
func (s *tier) decode(r *Reader, number uint32, spans []model.Span, n int64, wanted []model.Span) {
	s.t.Helper()
	got, count := bytes.Repeat([]byte{0xa5}, int(n)), make([]uint8, n)
	var lock sync.Mutex
	arrived := func(at, n int64) {
		lock.Lock()
		defer lock.Unlock()
		for i := range count[at : at+n] {
			count[at+int64(i)]++
		}
	}
	if err := r.Decode(wanted, got, arrived, regions.Options{Goroutines: s.copies, Room: s.room}); err != nil {
		s.t.Fatalf("checkpoint %d: %v", number, err)
	}
	want, once := bytes.Repeat([]byte{0xa5}, int(n)), make([]uint8, n)
	region := 0
	for _, w := range wanted {
		for w.Bytes > 0 && spans[region].End() < w.End() {
			region++
		}
		if w.Bytes > 0 {
			copy(want[w.Offset:w.End()], s.plain[number][region].Bytes[w.Offset-spans[region].Offset:])
		}
		for i := w.Offset; i < w.End(); i++ {
			once[i] = 1
		}
	}
	if !bytes.Equal(got, want) {
		s.t.Fatalf("checkpoint %d: wrong bytes", number)
	}
	if !bytes.Equal(count, once) {
		s.t.Fatalf("checkpoint %d: not each wanted byte arrived once", number)
	}
}

// window returns memory for the bytes of a checkpoint, and clears what is not used any more.
func (s *tier) window(r *Reader) Window {
	end := int64(0)
	for _, span := range r.spans {
		end = max(end, span.End())
	}
	slot := make([]byte, end)
	return Window{Slot: slot, Bytes: LeastWindow, Free: func(at, n int64) error {
		clear(slot[at : at+n])
		return nil
	}}
}

// resume replaces the writer by one that goes on behind a checkpoint.
func (s *tier) resume(number uint32) {
	s.t.Helper()
	r, _, _ := s.open(number)
	w, err := NewWriter(s.options)
	if err == nil {
		err = w.Resume(r, s.window(r), regions.Options{Goroutines: 2, Room: s.room})
	}
	if err != nil {
		s.t.Fatalf("resumed behind checkpoint %d: %v", number, err)
	}
	if known := w.Known(); !slices.Equal(known, r.Map().Named()) {
		s.t.Fatalf("resumed behind checkpoint %d: %d are known, and the map names %d", number, known, r.Map().Named())
	}
	s.writer, s.forgotten = w, map[uint32]bool{}
}

// change makes the next checkpoint from the one before.
func change(t *rapid.T, list []dedup.Region, random *rand.Rand, chunk int) []dedup.Region {
	list = clone(list)
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		i := 0
		if len(list) > 0 {
			i = random.IntN(len(list))
		}
		what := rapid.SampledFrom([]string{"appear", "vanish", "write", "write", "copy", "grow", "shrink", "swap", "fill", "periodic"}).Draw(t, "what")
		if len(list) == 0 && what != "appear" {
			continue
		}
		switch what {
		case "appear":
			sizes := []int{0, 1, chunk - 1, chunk, 5*chunk + 3, 40 * chunk, 300_000}
			p := make([]byte, sizes[random.IntN(len(sizes))])
			for j := range p {
				p[j] = byte(random.Uint32() >> (j / 1000 % 30))
			}
			list = append(list, dedup.Region{Name: fmt.Sprint("region ", random.Uint32()), Bytes: p})
		case "vanish":
			list = slices.Delete(list, i, i+1)
		case "swap":
			list[0], list[i] = list[i], list[0]
		case "grow":
			list[i].Bytes = append(list[i].Bytes, make([]byte, random.IntN(3*chunk))...)
		case "shrink":
			list[i].Bytes = list[i].Bytes[:random.IntN(len(list[i].Bytes)+1)]
		default:
			alter(list, i, what, random, chunk)
		}
	}
	return list
}

// alter writes into a region.
func alter(list []dedup.Region, i int, what string, random *rand.Rand, chunk int) {
	p := list[i].Bytes
	if len(p) == 0 {
		return
	}
	from := random.IntN(len(p))
	end := min(from+1+random.IntN(1+len(p)/3), len(p))
	switch what {
	case "write":
		for j := from; j < end; j += 1 + random.IntN(3*chunk) {
			p[j] = byte(random.Uint32())
		}
	case "copy": // whole chunks of any region
		source := list[random.IntN(len(list))].Bytes
		from = from / chunk * chunk
		if n := len(source) / chunk; n > 0 {
			copy(p[from:end], source[random.IntN(n)*chunk:])
		}
	case "fill":
		clear(p[from:end])
	case "periodic":
		for j := from / chunk * chunk; j < end; j += chunk {
			copy(p[j:end], p[from/chunk*chunk:][:min(chunk, len(p)-from/chunk*chunk)])
		}
	}
}

// Whatever the changes, and whatever is dropped or forgotten: each live checkpoint is read from the objects that its difference lists, whole and in parts.
func TestHistories(t *testing.T) {
	forms := map[form]int{}
	rapid.Check(t, func(t *rapid.T) { testHistory(t, forms) })
	t.Logf("objects by form: %v", forms)
	if forms[formDifference] == 0 || forms[formMap] == 0 {
		t.Errorf("not each form occurs: %v", forms)
	}
}

func testHistory(t *rapid.T, forms map[form]int) {
	o := Options{
		Method:     rapid.SampledFrom(methods).Draw(t, "method"),
		Chunk:      1 << rapid.IntRange(5, 12).Draw(t, "log2 chunk"),
		Kind:       rapid.SampledFrom([]digest.Kind{0, digest.XXH3, digest.Murmur3}).Draw(t, "kind"),
		Lineage:    rapid.Uint64().Draw(t, "lineage"),
		Record:     rapid.SampledFrom([]int64{0, 5_000, 1 << 20}).Draw(t, "record"),
		MaxSources: rapid.IntRange(0, 6).Draw(t, "sources"),
		MaxChain:   rapid.IntRange(0, 3).Draw(t, "chain"),
		handicap:   rapid.SampledFrom([]uint64{0, 1 << 30}).Draw(t, "handicap"),
	}
	o.References = o.Method == difference.Full && rapid.Bool().Draw(t, "references")
	s := newTier(t, o)
	defer s.close()
	var now []dedup.Region
	for range rapid.IntRange(1, 14).Draw(t, "steps") {
		now = change(t, now, s.random, o.Chunk)
		switch rapid.SampledFrom([]string{"", "", "", "drop", "forget", "large", "resume", "compact"}).Draw(t, "then") {
		case "drop":
			for _, n := range s.live() {
				if s.random.IntN(2) == 0 {
					s.drop(n)
				}
			}
		case "forget":
			if known := s.writer.Known(); len(known) > 0 {
				s.forget(known[s.random.IntN(len(known))])
			}
		case "compact":
			s.writer.Compact(s.alone())
		case "resume":
			if n := s.writer.next - 1; s.plain[n] != nil {
				s.resume(n)
			}
		case "large":
			d := s.draft(now)
			if _, _, err := s.write(d, s.random.Int64N(headerBytes+1)); !errors.Is(err, regions.ErrLarge) {
				t.Fatalf("no more than a header: %v", err)
			}
			s.forget(d.Number())
		}
		n := s.add(now)
		s.whole(n)
		forms[form(s.objects[n][s.differences[n].Data+atForm])]++
	}
	for _, n := range s.live() {
		s.whole(n)
		s.parts(n)
	}
}
