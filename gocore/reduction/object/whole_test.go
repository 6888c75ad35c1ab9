package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/regions"
)

// wholeOptions are those of lineages with whole checkpoints in tests.
var wholeOptions = Options{Method: difference.Full, Chunk: 32, Lineage: 0x0123456789abcdef}

// describe describes a checkpoint as a whole one. Its containers are not made yet.
func (s *tier) describe(number uint32, checkpoint []dedup.Region) (w *Whole, slotOf []byte, choices []regions.Choice) {
	names, spans, n := slot(checkpoint)
	slotOf = make([]byte, n)
	for i, r := range checkpoint {
		copy(slotOf[spans[i].Offset:], r.Bytes)
		choices = append(choices, regions.Choice{Kind: kinds[i%len(kinds)], Modes: codec.AllModes})
	}
	return &Whole{Lineage: s.options.Lineage, Number: number, Names: names, Spans: spans}, slotOf, choices
}

// addWhole adds a checkpoint whose containers are made of so many bytes as a device makes them, with the containers of another one; 0: with none.
func (s *tier) addWhole(number uint32, checkpoint []dedup.Region, part int64, reference uint32) *Whole {
	s.t.Helper()
	w, slotOf, choices := s.describe(number, checkpoint)
	o := regions.Options{Goroutines: s.copies, Room: s.room}
	if reference > 0 {
		of := s.differences[reference]
		w.Reference = &model.Source{Number: reference, Data: of.Data, Meta: of.Meta, Offset: 7}
		r, _, _ := s.open(reference)
		o.Reference, choices = r.Reference, regions.WithReference(choices)
	}
	var object []byte
	var err error
	w.Encoding, err = regions.Encode(w.Spans, choices, part, model.MostData, func(at int64, room []byte) ([]byte, error) {
		return slotOf[at:][:len(room)], nil
	}, func(p []byte) error {
		object = append(object, p...)
		return nil
	}, o)
	if err != nil {
		s.t.Fatalf("checkpoint %d: %v", number, err)
	}
	meta, err := w.Metadata()
	if err != nil {
		s.t.Fatalf("checkpoint %d: %v", number, err)
	}
	d := w.Difference(int64(len(meta)))
	if err := d.Check(); err != nil || d.Refers != (reference > 0) || d.Data != w.Encoding.Bytes() {
		s.t.Fatalf("checkpoint %d: %+v: %v", number, d, err)
	}
	s.objects[number], s.differences[number], s.plain[number] = append(object[:d.Data:d.Data], meta...), d, clone(checkpoint)
	return w
}

// verifyWhole reads a whole checkpoint, and takes its containers out again.
func (s *tier) verifyWhole(number uint32, w *Whole) {
	s.t.Helper()
	s.whole(number)
	s.parts(number)
	r, spans, n := s.open(number)
	e, ok := r.Whole()
	if !ok || e.Part != w.Encoding.Part || !slices.Equal(e.Lengths, w.Encoding.Lengths) || e.Sections {
		s.t.Fatalf("checkpoint %d has the encoding %+v, %v, not %+v", number, e, ok, w.Encoding)
	}
	if err := e.Check(spans); err != nil {
		s.t.Fatalf("checkpoint %d: %v", number, err)
	}
	o := regions.Options{Goroutines: s.copies, Room: s.room}
	if d := s.differences[number]; d.Refers {
		of, _, _ := s.open(d.Sources[0].Number)
		o.Reference = of.Reference
	}
	got := make([]byte, n)
	err := regions.Decode(spans, e, spans, func(at int64, to []byte) error {
		copy(to, s.objects[number][at:])
		return nil
	}, got, func(int64, int64) {}, o)
	for i, r := range s.plain[number] {
		if err != nil || !bytes.Equal(got[spans[i].Offset:spans[i].End()], r.Bytes) {
			s.t.Fatalf("checkpoint %d: its containers do not have region %d: %v", number, i, err)
		}
	}
}

// someBytes are bytes as checkpoints have them: weights, NaNs with payloads, counters, noise and constants.
func someBytes(t *rapid.T, n int, random *rand.Rand) []byte {
	p := make([]byte, n)
	switch rapid.SampledFrom([]string{"weights", "nans", "counters", "noise", "constant"}).Draw(t, "content") {
	case "weights":
		return weights(n, random)
	case "nans":
		for i := 0; i+4 <= n; i += 4 {
			binary.LittleEndian.PutUint32(p[i:], math.Float32bits(float32(math.NaN()))^random.Uint32()>>10^random.Uint32()&1<<31)
		}
	case "counters":
		for i := 0; i+4 <= n; i += 4 {
			binary.LittleEndian.PutUint32(p[i:], uint32(i/8))
		}
	case "noise":
		for i := range p {
			p[i] = byte(random.Uint32())
		}
	case "constant":
		for i := range p {
			p[i] = 0x41
		}
	}
	return p
}

// Whatever the regions and the part, with a reference or without: a whole checkpoint is read from its object, and its containers come out as they were.
func TestWhole(t *testing.T) {
	rarely(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		o := wholeOptions
		o.Lineage = rapid.Uint64().Draw(t, "lineage")
		s := newTier(t, o)
		defer s.close()
		part := rapid.SampledFrom([]int64{1, 1, 2, 3, 4, 16, 64}).Draw(t, "grains") * model.PartGrain
		var now []dedup.Region
		for i := range rapid.IntRange(0, 4).Draw(t, "regions") {
			sizes := []int{0, 1, 3, codec.ChunkBytes, 100_001, model.PartGrain, model.PartGrain + 1}
			if part <= 4*model.PartGrain {
				sizes = append(sizes, int(part)-1, int(part), int(part)+1, int(part)+codec.ChunkBytes+5, 2*int(part)+77)
			}
			now = append(now, dedup.Region{Name: fmt.Sprint("region ", i), Bytes: someBytes(t, rapid.SampledFrom(sizes).Draw(t, "size"), s.random)})
		}
		first := s.addWhole(1, now, part, 0)
		s.verifyWhole(1, first)
		next := clone(now)
		for i := range next {
			switch rapid.SampledFrom([]string{"same", "drift", "other"}).Draw(t, "next") {
			case "drift":
				next[i].Bytes = drift(next[i].Bytes, 1e-6, s.random)
			case "other":
				next[i].Bytes = someBytes(t, len(next[i].Bytes), s.random)
			}
		}
		s.verifyWhole(2, s.addWhole(2, next, part, 1))
		s.writeWhole(3, next)
	})
}

// writeWhole writes a checkpoint whose reference is gone.
func (s *tier) writeWhole(number uint32, checkpoint []dedup.Region) {
	s.t.Helper()
	w, slotOf, choices := s.describe(number, checkpoint)
	var object []byte
	plain := func(at int64, room []byte) ([]byte, error) { return slotOf[at:][:len(room)], nil }
	write := func(most int64, o regions.Options) (*model.Difference, error) {
		object, o.Room = nil, s.room
		return w.Write(plain, choices, most, func(p []byte) error {
			object = append(object, p...)
			return nil
		}, o)
	}
	d, err := write(1<<40, regions.Options{Goroutines: s.copies, Compression: s.compression})
	if err != nil || d.Check() != nil || d.Refers || len(d.Sources) > 0 || d.Number != number {
		s.t.Fatalf("checkpoint %d: %+v: %v", number, d, err)
	}
	s.objects[number], s.differences[number], s.plain[number] = object[:d.Bytes():d.Bytes()], d, clone(checkpoint)
	s.whole(number)
	s.parts(number)
	r, spans, _ := s.open(number)
	e, ok := r.Whole()
	if !ok || e.Part != model.PartGrain || e.Check(spans) != nil || e.Sections != d.Sections {
		s.t.Fatalf("checkpoint %d has the encoding %+v, %v", number, e, ok)
	}
	if !d.Sections {
		w.Encoding = e
		if meta, err := w.Metadata(); err != nil || !bytes.Equal(meta, s.objects[number][d.Data:]) || !reflect.DeepEqual(w.Difference(d.Meta), d) {
			s.t.Fatalf("checkpoint %d: metadata for its encoding are others: %v", number, err)
		}
	}
	if _, err := write(d.Bytes()-1, regions.Options{Compression: s.compression}); !errors.Is(err, regions.ErrLarge) {
		s.t.Fatalf("checkpoint %d: one byte less than it has: %v", number, err)
	}
	if _, err := write(1<<40, regions.Options{Reference: r.Reference}); !errors.Is(err, ErrSources) {
		s.t.Fatalf("checkpoint %d: with a reference: %v", number, err)
	}
	choices = append(choices, regions.Choice{})
	if _, err := write(1<<40, regions.Options{}); !errors.Is(err, ErrOptions) {
		s.t.Fatalf("checkpoint %d: too many choices: %v", number, err)
	}
}

// Regions that are longer than the longest parts are read, with a reference too, and memory is that of the containers which are in use.
func TestLongParts(t *testing.T) {
	for _, grains := range []int64{16, 64} {
		if raceDetector && grains > 16 {
			continue // it takes half a minute
		}
		s := newTier(t, wholeOptions)
		part := grains * model.PartGrain
		random := rand.New(rand.NewPCG(1, 2))
		now := []dedup.Region{{Name: "w", Bytes: make([]byte, 2*part+codec.ChunkBytes+9)}, {Name: "b", Bytes: weights(1001, random)}}
		for i := range now[0].Bytes {
			now[0].Bytes[i] = byte(i >> 12)
		}
		first := s.addWhole(1, now, part, 0)
		copy(now[0].Bytes[part-100:], weights(1000, random))
		second := s.addWhole(2, now, part, 1)
		s.verifyWhole(1, first)
		s.verifyWhole(2, second)
		r, _, _ := s.open(2)
		for at := int64(0); at < int64(len(now[0].Bytes)); at += model.PartGrain {
			p := make([]byte, min(model.PartGrain, int64(len(now[0].Bytes))-at))
			if err := r.Read(0, at, p); err != nil || !bytes.Equal(p, now[0].Bytes[at:][:len(p)]) {
				t.Fatalf("%d bytes from %d on: %v", len(p), at, err)
			}
		}
		s.checkKept(r)
		s.close()
	}
}

// checkKept verifies that the containers which Read keeps beside the latest take no more memory than they may.
func (s *tier) checkKept(r *Reader) {
	s.t.Helper()
	bytes := 0
	for _, o := range r.kept.list[1:] {
		bytes += o.bytes()
	}
	if n := len(r.kept.list); n > keptContainers || bytes > keptBytes {
		s.t.Fatalf("%d containers are kept, all but the latest with %d bytes", n, bytes)
	}
}

// Read keeps many containers of short parts, and of long ones so many that their memory is bounded.
func TestKeptContainers(t *testing.T) {
	for grains, least := range map[int64]int{1: keptContainers, 4: 8, 16: 3, 64: 1} {
		containers := min(20, 64/grains+2)
		s := newTier(t, wholeOptions)
		part := grains * model.PartGrain
		s.addWhole(1, []dedup.Region{{Name: "p", Bytes: bytes.Repeat([]byte("ab"), int(part*containers/2))}}, part, 0)
		r, _, _ := s.open(1)
		for i := range containers {
			if err := r.Read(0, i*part, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(r.kept.list); n < least {
			t.Errorf("of parts of %d bytes %d containers are kept", part, n)
		}
		s.checkKept(r)
		s.close()
	}
}

// A checkpoint may have sources of other parts, and be a source of other parts.
func TestSourcesOfOtherParts(t *testing.T) {
	rarely(t, 4)
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Method: rapid.SampledFrom(methods[1:]).Draw(t, "method"), Chunk: 256, Lineage: rapid.Uint64().Draw(t, "lineage"), Record: 1 << 20}
		s := newTier(t, o)
		defer s.close()
		s.compression = codec.NoCompression
		part := rapid.Int64Range(2, 5).Draw(t, "grains") * model.PartGrain
		now := []dedup.Region{
			{Name: "a", Bytes: someBytes(t, int(part)+rapid.IntRange(-300, 300_000).Draw(t, "more"), s.random)},
			{Name: "b", Bytes: someBytes(t, rapid.IntRange(0, 700_000).Draw(t, "size"), s.random)},
		}
		s.addWhole(1, now, part, 0)
		s.resume(1)
		sources := 0
		for range 3 {
			now = clone(now)
			for range 5 {
				p := now[s.random.IntN(2)].Bytes
				if len(p) > 0 {
					p[s.random.IntN(len(p))]++
				}
			}
			copy(now[0].Bytes[s.random.IntN(4)*256:], now[0].Bytes[part/2:][:1000])
			n := s.add(now)
			s.whole(n)
			s.parts(n)
			sources += len(s.differences[n].Sources)
			r, _, _ := s.open(n)
			if _, ok := r.Whole(); ok != (len(s.differences[n].Sources) == 0) {
				t.Fatalf("checkpoint %d with the sources %+v is whole: %v", n, s.differences[n].Sources, ok)
			}
		}
		if sources == 0 {
			t.Fatal("no checkpoint has a source")
		}
	})
}

// Chunks of long parts that are sound are salvaged, and those that are not are found in memory, as of short ones.
func TestLossesOfLongParts(t *testing.T) {
	rarely(t, 10)
	ends := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		s := newTier(t, Options{Method: difference.Runs, Chunk: 4096, Lineage: 8 * uint64(rapid.IntRange(1, 1000).Draw(t, "lineage")), Record: 1 << 20})
		defer s.close()
		const part = 2 * model.PartGrain
		now := []dedup.Region{{Name: "a", Bytes: someBytes(t, part+50_000, s.random)}}
		s.addWhole(1, now, part, 0)
		s.resume(1)
		for range 2 {
			now = clone(now)
			now[0].Bytes[s.random.IntN(len(now[0].Bytes))]++
			s.add(now)
		}
		lost := firsts{}
		for range rapid.IntRange(1, 4).Draw(t, "flips") {
			n, offset, some := s.someFirst(1 + uint32(s.random.IntN(3)))
			if !some {
				continue
			}
			r, _, _ := s.open(n)
			container, from, _ := r.places[len(r.places)-1].find(int64(offset))
			if !flippable(s, n, container, int(from/codec.ChunkBytes)) {
				continue
			}
			begin, end := s.flip(n, container, int(from/codec.ChunkBytes))
			for at := begin; at < end; at++ {
				lost.mark(n, at)
			}
		}
		s.judge([]uint32{1, 2, 3}, lost, ends)
	})
	t.Logf("restores: %v", ends)
	if !raceDetector && (ends["found"] == 0 || ends["lost"] == 0 || ends["unhurt"] == 0) {
		t.Errorf("not each end occurs: %v", ends)
	}
}

// flippable tells whether a chunk has a payload.
func flippable(s *tier, number uint32, container, chunk int) bool {
	r, _, _ := s.open(number)
	in := r.places[len(r.places)-1]
	c, err := codec.Open(s.objects[number][in.at[container]:in.at[container+1]], int(in.plain(container)))
	return err != nil || c.Entry(chunk).Bytes > 0
}

// What Whole cannot describe is refused.
func TestWholeThatIsRefused(t *testing.T) {
	s := newTier(t, wholeOptions)
	defer s.close()
	now := []dedup.Region{{Name: "a", Bytes: make([]byte, 1000)}, {Name: "b"}}
	good := s.addWhole(5, now, 2*model.PartGrain, 0)
	for what, x := range map[string]struct {
		change func(w *Whole)
		want   error
	}{
		"no encoding":     {func(w *Whole) { w.Encoding = nil }, ErrOptions},
		"sections":        {func(w *Whole) { w.Encoding.Sections = true }, ErrOptions},
		"a long part":     {func(w *Whole) { w.Encoding.Part = MostPart + model.PartGrain }, ErrOptions},
		"an odd part":     {func(w *Whole) { w.Encoding.Part++ }, model.ErrEncoding},
		"no part":         {func(w *Whole) { w.Encoding.Part = 0 }, model.ErrEncoding},
		"other regions":   {func(w *Whole) { w.Spans[1].Bytes = 1 }, model.ErrEncoding},
		"fewer names":     {func(w *Whole) { w.Names = w.Names[:1] }, ErrOptions},
		"one name":        {func(w *Whole) { w.Names[1] = "a" }, difference.ErrFormat},
		"a number":        {func(w *Whole) { w.Number = difference.MaxCheckpoint + 1 }, difference.ErrFormat},
		"many bytes":      {func(w *Whole) { w.Spans[1].Bytes = difference.MaxBytes }, difference.ErrLimit},
		"fewer than none": {func(w *Whole) { w.Spans[1].Bytes = -1 }, difference.ErrLimit},
		"later reference": {func(w *Whole) { w.Reference = &model.Source{Number: 5, Meta: 64} }, ErrSources},
	} {
		w, e := *good, *good.Encoding
		w.Encoding, w.Names, w.Spans = &e, slices.Clone(w.Names), slices.Clone(w.Spans)
		x.change(&w)
		if _, err := w.Metadata(); !errors.Is(err, x.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// wholeTier has whole checkpoints of two parts, with references and without: small ones, and ones that are longer than their part.
func wholeTier(t fataler) *tier {
	s := newTier(t, wholeOptions)
	random := rand.New(rand.NewPCG(5, 6))
	now := []dedup.Region{{Name: "bytes", Bytes: []byte("some bytes that stay")}, {Name: "w", Bytes: weights(2002, random)}, {Name: "empty"}}
	next := clone(now)
	next[1].Bytes = drift(next[1].Bytes, 1e-6, random)
	s.addWhole(1, now, 16*model.PartGrain, 0)
	s.addWhole(2, next, 16*model.PartGrain, 1)
	long := []dedup.Region{{Name: "long", Bytes: bytes.Repeat([]byte{7}, 2*model.PartGrain+100)}, {Name: "w", Bytes: weights(33, random)}}
	s.addWhole(3, long, 2*model.PartGrain, 0)
	long = clone(long)
	long[0].Bytes[model.PartGrain+5]++
	s.addWhole(4, long, 2*model.PartGrain, 3)
	return s
}

// Whichever byte of the metadata or of the containers is another one: a restore gives the right bytes, or a damage.
func TestDamagedWholes(t *testing.T) {
	s := wholeTier(t)
	defer s.close()
	for number := range uint32(4) {
		number++
		object, d := s.objects[number], s.differences[number]
		readers := []uint32{number}
		if !d.Refers {
			readers = append(readers, number+1)
		}
		found, step := 0, 1
		for at := 0; at < len(object); at += step {
			if step = 1; int64(at) < d.Data && number > 2 {
				step = 37
			}
			for _, bit := range []byte{1, 0x80} {
				object[at] ^= bit
				for _, n := range readers {
					if err := s.restore(n); err != nil {
						found++
						if damage := kind(t, err); (damage.Region < 0) != (int64(at) >= d.Data) || (damage.Source == Own) != (n == number) {
							t.Fatalf("byte %d of object %d with %d bytes of containers: checkpoint %d has %+v", at, number, d.Data, n, damage)
						}
					} else if int64(at) >= d.Data && n == number {
						t.Fatalf("byte %d of the metadata of object %d may be another one", int64(at)-d.Data, number)
					}
				}
				object[at] ^= bit
			}
		}
		t.Logf("object %d: %d restores failed", number, found)
	}
}

// Metadata that end early are refused.
func TestTruncatedWholes(t *testing.T) {
	s := wholeTier(t)
	defer s.close()
	for number, d := range s.differences {
		names, spans, _ := slot(s.plain[number])
		for meta := int64(1); meta < d.Meta; meta++ {
			short := *d
			short.Meta = meta
			_, err := Open(&short, names, spans, func(source int, at int64, p []byte) error {
				if source == Own && at+int64(len(p)) > short.Bytes() {
					t.Fatalf("a read of %d bytes at %d of %d", len(p), at, short.Bytes())
				}
				if source == Own {
					copy(p, s.objects[number][at:])
					return nil
				}
				return s.reading(d)(source, at, p)
			})
			if kind(t, err).Region != -1 {
				t.Errorf("%d bytes of the metadata of object %d: %v", meta, number, err)
			}
		}
	}
}

// Whatever part the header claims, with right checksums: a reader gives the right bytes or a damage, and allocates little. A part that the format does not have, or
// that contradicts the table or the reference, is refused.
func TestHostileParts(t *testing.T) {
	s := wholeTier(t)
	defer s.close()
	for number := range uint32(4) {
		number++
		d := s.differences[number]
		meta := s.objects[number][d.Data:]
		kept := slices.Clone(meta)
		for part := range 256 {
			for _, zero := range []byte{0, 1} {
				meta[atPart], meta[atZero] = byte(part), zero
				binary.LittleEndian.PutUint64(meta[atSum:], headSum(meta[:headerBytes+binary.LittleEndian.Uint64(meta[atTable:])]))
				before, after := new(runtime.MemStats), new(runtime.MemStats)
				runtime.ReadMemStats(before)
				err := s.restore(number)
				runtime.ReadMemStats(after)
				if taken := after.TotalAlloc - before.TotalAlloc; taken > 8<<20 {
					t.Errorf("object %d with the part %d: %d bytes of memory", number, part, taken)
				}
				same := part == int(kept[atPart]) || number == 1 && part < 64 // all of its regions are shorter than any part
				same = same && zero == 0
				if (err == nil) != same {
					t.Fatalf("object %d with the part %d: %v", number, part, err)
				}
				if err != nil && kind(t, err).Region != -1 {
					t.Fatalf("object %d with the part %d: %v", number, part, err)
				}
				if number == 2 && part < 64 && zero == 0 && !same && !errors.Is(err, ErrOther) {
					t.Fatalf("a reference with another part: %v", err)
				}
			}
		}
		copy(meta, kept)
		if err := s.restore(number); err != nil {
			t.Fatal(err)
		}
	}
}

// The bytes of a reference are asked for by the parts that it has.
func TestReferenceOfOtherParts(t *testing.T) {
	s := wholeTier(t)
	defer s.close()
	r, _, _ := s.open(3)
	room := make([]byte, model.ContainerBound(2*model.PartGrain))
	for _, x := range []struct{ container, plain int }{{0, model.PartGrain}, {1, 99}, {1, 101}, {2, 32}, {3, 33}, {-1, 33}} {
		if err := r.Reference(x.container, make([]byte, x.plain), room); !errors.Is(err, ErrSources) {
			t.Errorf("container %d of %d bytes: %v", x.container, x.plain, err)
		}
	}
	for _, x := range []struct{ container, plain int }{{0, 2 * model.PartGrain}, {1, 100}, {2, 33}} {
		if err := r.Reference(x.container, make([]byte, x.plain), room); err != nil {
			t.Errorf("container %d of %d bytes: %v", x.container, x.plain, err)
		}
	}
}

// Whole tells a checkpoint with all of its bytes in its containers, in order, from others.
func TestWhichCheckpointsAreWhole(t *testing.T) {
	for _, method := range append(methods, referring) {
		s := smallTier(t, method)
		defer s.close()
		for number := range s.objects {
			r, spans, _ := s.open(number)
			e, ok := r.Whole()
			if want := method == difference.Full || method == referring; want && !ok || ok && e.Check(spans) != nil {
				t.Errorf("%v: checkpoint %d is whole: %v, %+v", method, number, ok, e)
			}
			if ok && method != referring && len(s.differences[number].Sources) > 0 && r.Map().References() != nil {
				t.Errorf("%v: checkpoint %d is whole, and refers to %d", method, number, r.Map().References())
			}
			if ok {
				for i, span := range spans {
					if r.heads[len(r.heads)-1].firsts[i].Bytes != span.Bytes {
						t.Errorf("%v: checkpoint %d is whole, and has other bytes of region %d", method, number, i)
					}
				}
			}
		}
	}
}
