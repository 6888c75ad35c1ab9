package object

import (
	"math/rand/v2"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/regions"
)

// A checkpoint of 64 MiB of which one 4 KiB page in a hundred has changed.
func BenchmarkSparse(b *testing.B) {
	p := make([]byte, 64<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p)
	random := rand.New(rand.NewPCG(1, 2))
	s := newTier(b, Options{Method: difference.Runs, Chunk: 128, Lineage: 1, Record: 64 << 20})
	defer s.close()
	choices := []regions.Choice{{Kind: codec.Int8, Modes: 0}}
	var d *Draft
	var described *model.Difference
	next := func() []byte {
		for range len(p) >> 12 / 100 {
			p[random.IntN(len(p))]++
		}
		var err error
		if d, err = s.writer.Draft([]dedup.Region{{Name: "p", Bytes: p}}); err != nil {
			b.Fatal(err)
		}
		var object []byte
		var sources []model.Source
		for _, n := range d.Sources() {
			o := s.differences[n]
			sources = append(sources, model.Source{Number: n, Data: o.Data, Meta: o.Meta})
		}
		if described, err = d.Write(sources, choices, model.MostData, func(p []byte) error {
			object = append(object, p...)
			return nil
		}, regions.Options{Goroutines: 1, Room: s.room}); err != nil {
			b.Fatal(err)
		}
		s.differences[d.Number()], s.objects[d.Number()] = described, object[:described.Bytes():described.Bytes()]
		return object
	}
	for range 8 {
		next()
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(len(p)))
		for b.Loop() {
			next()
		}
		b.ReportMetric(float64(described.Data), "data-B")
		b.ReportMetric(float64(described.Meta), "meta-B")
		b.ReportMetric(float64(len(described.Sources)), "sources")
	})
	slot, spans := make([]byte, len(p)), []model.Span{{Bytes: int64(len(p))}}
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(p)))
		for b.Loop() {
			r, err := Open(described, []string{"p"}, spans, s.reading(described))
			if err == nil {
				err = r.Decode(spans, slot, func(int64, int64) {}, regions.Options{Goroutines: 1, Room: s.room})
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(p)))
		r, err := Open(described, []string{"p"}, spans, s.reading(described))
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for at := 0; at < len(p); at += model.PartGrain {
				if err := r.Read(0, int64(at), slot[:model.PartGrain]); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
