package regions

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
)

// sample is a checkpoint: a slot with regions, some of which compress.
type sample struct {
	slot    []byte
	spans   []model.Span
	choices []Choice
	part    int64

	compression codec.Compression
}

func drawSample(t *rapid.T) *sample {
	s := &sample{part: model.PartGrain * rapid.Int64Range(1, 3).Draw(t, "part")}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	at := int64(0)
	for range rapid.IntRange(0, 4).Draw(t, "regions") {
		at += rapid.Int64Range(0, 200).Draw(t, "gap")
		n := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, codec.ChunkBytes, s.part, s.part + 1, 2*s.part - 1}), rapid.Int64Range(0, 3*s.part)).Draw(t, "bytes")
		s.spans = append(s.spans, model.Span{Offset: at, Bytes: n})
		s.choices = append(s.choices, Choice{rapid.SampledFrom([]codec.Kind{codec.Int8, codec.BFloat16, codec.Float32, codec.Int64}).Draw(t, "kind"), codec.AllModes})
		at += n
	}
	s.compression = rapid.SampledFrom([]codec.Compression{codec.NoCompression, codec.NoCompression, codec.Zstd, codec.S2, codec.Huff0}).Draw(t, "compression")
	s.slot = make([]byte, at+rapid.Int64Range(0, 50).Draw(t, "behind"))
	for i := range s.slot {
		s.slot[i] = byte(r.Uint32())
	}
	for _, span := range s.spans {
		p := s.slot[span.Offset:span.End()]
		switch r.IntN(3) {
		case 0:
			clear(p)
		case 1:
			for i := range p {
				p[i] = byte(i / 1000)
			}
		}
	}
	return s
}

// encode encodes a sample with a source that passes memory of its own or fills the room, and a sink that checks how it is called.
func (s *sample) encode(t interface{ Errorf(string, ...any) }, goroutines int, ownMemory bool, most int64) ([]byte, *model.Encoding, error) {
	var encoded []byte
	var calls sync.Mutex
	last := int64(-1)
	room := &Room{}
	defer room.Free()
	from := func(at int64, p []byte) ([]byte, error) {
		if !calls.TryLock() {
			t.Errorf("two calls of the source at once")
			return nil, errors.New("two calls")
		}
		defer calls.Unlock()
		if at <= last {
			t.Errorf("the source is read at %d behind %d", at, last)
		}
		last = at
		if ownMemory {
			return s.slot[at : at+int64(len(p))], nil
		}
		copy(p, s.slot[at:])
		return p, nil
	}
	to := func(p []byte) error {
		if len(p) == 0 || len(p)%BlockBytes != 0 {
			t.Errorf("%d bytes for the sink", len(p))
		}
		encoded = append(encoded, p...)
		return nil
	}
	e, err := Encode(s.spans, s.choices, s.part, most, from, to, Options{Goroutines: goroutines, Room: room, Compression: s.compression})
	if err != nil {
		return nil, nil, err
	}
	for _, b := range encoded[e.Bytes():] {
		if b != 0 {
			t.Errorf("a byte behind the last container is %d", b)
			break
		}
	}
	return encoded[:e.Bytes()], e, nil
}

const boundless = 1 << 40

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSample(t)
		encoded, e, err := s.encode(t, rapid.IntRange(1, 4).Draw(t, "encoders"), rapid.Bool().Draw(t, "own memory"), boundless)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Check(s.spans); err != nil || e.Bytes() != int64(len(encoded)) {
			t.Fatalf("%v, %d bytes of %d", err, len(encoded), e.Bytes())
		}
		again, other, err := s.encode(t, 1, true, e.Bytes())
		if err != nil || !bytes.Equal(again, encoded) || !slices.Equal(other.Lengths, e.Lengths) {
			t.Fatalf("another number of goroutines, other bytes (%v)", err)
		}
		wanted := []model.Span{{Offset: 0, Bytes: int64(len(s.slot))}}
		if rapid.Bool().Draw(t, "in part") {
			wanted = nil
			for at := int64(0); at < int64(len(s.slot)); {
				at += rapid.Int64Range(0, 2*s.part).Draw(t, "skipped")
				n := rapid.Int64Range(0, 2*s.part).Draw(t, "wanted")
				if n = min(n, int64(len(s.slot))-at); n > 0 {
					wanted = append(wanted, model.Span{Offset: at, Bytes: n})
				}
				at += n
			}
		}
		decodedRight(t, s, e, encoded, wanted, rapid.IntRange(1, 4).Draw(t, "decoders"))
	})
}

// decodedRight decodes what is wanted, and compares it and what arrived.
func decodedRight(t *rapid.T, s *sample, e *model.Encoding, encoded []byte, wanted []model.Span, goroutines int) {
	slot := make([]byte, len(s.slot))
	told := make([]uint8, len(s.slot))
	var lock sync.Mutex
	room := &Room{}
	defer room.Free()
	err := Decode(s.spans, e, wanted, func(at int64, to []byte) error {
		copy(to, encoded[at:at+int64(len(to))])
		return nil
	}, slot, func(at, n int64) {
		lock.Lock()
		defer lock.Unlock()
		if !bytes.Equal(slot[at:at+n], s.slot[at:at+n]) {
			t.Errorf("%d bytes at %d arrive before they are right", n, at)
		}
		for i := at; i < at+n; i++ {
			told[i]++
		}
	}, Options{Goroutines: goroutines, Room: room})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]uint8, len(s.slot))
	for _, span := range s.spans {
		for _, w := range wanted {
			for i := max(span.Offset, w.Offset); i < min(span.End(), w.End()); i++ {
				want[i] = 1
			}
		}
	}
	if !bytes.Equal(told, want) {
		t.Fatal("other bytes arrived than those wanted")
	}
}

// Any part of what was encoded with another checkpoint is decoded with it. Where no container needs it, it is decoded without.
func TestDecodingWithAReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSample(t)
		s.compression = codec.NoCompression
		former := slices.Clone(s.slot)
		for i := 0; i < len(former); i += rapid.IntRange(50, 5000).Draw(t, "apart") {
			former[i]++
		}
		references := 0
		reference := func(slot []byte) Reference {
			var all []model.Span
			for _, span := range s.spans {
				for at := int64(0); at < span.Bytes; at += s.part {
					all = append(all, model.Span{Offset: span.Offset + at, Bytes: min(s.part, span.Bytes-at)})
				}
			}
			return func(container int, plain, _ []byte) error {
				references++
				copy(plain, slot[all[container].Offset:all[container].End()])
				return nil
			}
		}
		var encoded []byte
		room := &Room{}
		defer room.Free()
		e, err := Encode(s.spans, s.choices, s.part, boundless, func(at int64, p []byte) ([]byte, error) { return s.slot[at : at+int64(len(p))], nil },
			func(p []byte) error { encoded = append(encoded, p...); return nil }, Options{Goroutines: 1, Room: room, Reference: reference(former)})
		if err != nil {
			t.Fatal(err)
		}
		references = 0
		from := func(at int64, to []byte) error { copy(to, encoded[at:]); return nil }
		decode := func(wanted []model.Span, r Reference) ([]byte, error) {
			slot := make([]byte, len(s.slot))
			return slot, Decode(s.spans, e, wanted, from, slot, func(int64, int64) {}, Options{Goroutines: 1, Room: room, Reference: r})
		}
		at := rapid.Int64Range(0, int64(len(s.slot))).Draw(t, "at")
		wanted := model.Span{Offset: at, Bytes: rapid.Int64Range(0, int64(len(s.slot))-at).Draw(t, "bytes")}
		got, err := decode([]model.Span{wanted}, reference(former))
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range s.spans {
			if a, b := max(span.Offset, wanted.Offset), min(span.End(), wanted.End()); a < b && !bytes.Equal(got[a:b], s.slot[a:b]) {
				t.Fatalf("bytes %d to %d differ", a, b)
			}
		}
		if needed := references > 0; !needed {
			if _, err := decode([]model.Span{wanted}, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Containers of more bytes than are allowed end the encoding, whoever writes them.
func TestTooManyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSample(t)
		_, e, err := s.encode(t, 2, true, boundless)
		if err != nil {
			t.Fatal(err)
		}
		if e.Bytes() == 0 {
			return
		}
		most := rapid.Int64Range(0, e.Bytes()-1).Draw(t, "most")
		if _, _, err := s.encode(t, rapid.IntRange(1, 4).Draw(t, "encoders"), true, most); !errors.Is(err, ErrLarge) {
			t.Fatal(err)
		}
	})
}

var errTest = errors.New("of the test")

// The error of a source or a sink is that of the call, and no goroutine stays behind.
func TestErrorsOfSourceAndSink(t *testing.T) {
	slot := make([]byte, 40*model.PartGrain)
	r := rand.NewChaCha8([32]byte{})
	_, _ = r.Read(slot)
	spans, choices := []model.Span{{Offset: 0, Bytes: int64(len(slot))}}, []Choice{{Kind: codec.Int8}} // no modes: the bytes do not matter
	for goroutines := range 5 {
		for bad := range 30 {
			calls := 0
			from := func(at int64, p []byte) ([]byte, error) {
				if calls++; calls > bad {
					return nil, errTest
				}
				return slot[at : at+int64(len(p))], nil
			}
			o := Options{Goroutines: goroutines, Room: &Room{}}
			if _, err := Encode(spans, choices, model.PartGrain, boundless, from, func([]byte) error { return nil }, o); !errors.Is(err, errTest) {
				t.Fatalf("source %d: %v", bad, err)
			}
			o.Room.Free()
		}
		for bad := range 3 {
			calls := 0
			from := func(at int64, p []byte) ([]byte, error) { return slot[at : at+int64(len(p))], nil }
			to := func([]byte) error {
				if calls++; calls > bad {
					return errTest
				}
				time.Sleep(time.Millisecond)
				return nil
			}
			o := Options{Goroutines: goroutines, Room: &Room{}}
			if _, err := Encode(spans, choices, model.PartGrain, boundless, from, to, o); !errors.Is(err, errTest) {
				t.Fatalf("sink %d: %v", bad, err)
			}
			o.Room.Free()
		}
	}
}

// A source that has failed is not called again, although the goroutine that read it has to wait before it can tell the others.
func TestAFailedSourceIsNotCalledAgain(t *testing.T) {
	const part = 5 << 20 // more than is collected for one call of the sink
	slot := make([]byte, 3*part)
	spans, choices := []model.Span{{Offset: 0, Bytes: int64(len(slot))}}, []Choice{{Kind: codec.Int8}}
	writing, again := make(chan struct{}), make(chan struct{}, len(slot)/part)
	failed := false
	from := func(at int64, p []byte) ([]byte, error) {
		if failed {
			again <- struct{}{}
		}
		if at > 0 {
			<-writing
			failed = true
			return nil, errTest
		}
		return slot[:len(p)], nil
	}
	to := func([]byte) error {
		close(writing)
		select {
		case <-again:
			t.Error("the source was called again")
		case <-time.After(50 * time.Millisecond):
		}
		return nil
	}
	o := Options{Goroutines: 3, Room: &Room{}}
	defer o.Room.Free()
	if _, err := Encode(spans, choices, part, boundless, from, to, o); !errors.Is(err, errTest) {
		t.Fatal(err)
	}
}

// A damaged container is an error that names its region, and nothing of it arrives as if it were right.
func TestDamagedContainers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSample(t)
		encoded, e, err := s.encode(t, 1, true, boundless)
		if err != nil {
			t.Fatal(err)
		}
		if len(encoded) == 0 {
			return
		}
		at := rapid.IntRange(0, len(encoded)-1).Draw(t, "byte")
		encoded[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		region := 0
		e.Each(s.spans, func(c model.Container) bool {
			region = c.Region
			return c.At.End() <= int64(at)
		})
		slot := make([]byte, len(s.slot))
		room := &Room{}
		defer room.Free()
		err = Decode(s.spans, e, []model.Span{{Offset: 0, Bytes: int64(len(slot))}}, func(at int64, to []byte) error {
			copy(to, encoded[at:])
			return nil
		}, slot, func(int64, int64) {}, Options{Goroutines: 2, Room: room})
		damage := new(Damage)
		switch {
		case err == nil: // a byte without a meaning
			for _, span := range s.spans {
				if !bytes.Equal(slot[span.Offset:span.End()], s.slot[span.Offset:span.End()]) {
					t.Fatal("wrong bytes without an error")
				}
			}
		case !errors.As(err, &damage) || damage.Region != region || !errors.Is(err, codec.ErrCorrupt):
			t.Fatalf("damage in region %d: %v", region, err)
		}
	})
}

// An error of the source ends the decoding with that error.
func TestDecodeReportsErrorsOfItsSource(t *testing.T) {
	s := &sample{slot: make([]byte, 9*model.PartGrain), part: model.PartGrain, choices: []Choice{{codec.Int8, codec.AllModes}}}
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(s.slot)
	s.spans = []model.Span{{Offset: 0, Bytes: int64(len(s.slot))}}
	encoded, e, err := s.encode(t, 1, true, boundless)
	if err != nil {
		t.Fatal(err)
	}
	for goroutines := range 4 {
		err := Decode(s.spans, e, s.spans, func(at int64, to []byte) error {
			if at > 0 {
				return errTest
			}
			copy(to, encoded[at:])
			return nil
		}, make([]byte, len(s.slot)), func(int64, int64) {}, Options{Goroutines: goroutines, Room: &Room{}})
		if !errors.Is(err, errTest) {
			t.Fatal(err)
		}
	}
}
