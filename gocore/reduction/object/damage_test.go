package object

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/regions"
)

// restore reads a checkpoint whose objects may be damaged: in one call, and region by region.
func (s *tier) restore(number uint32) error {
	d := s.differences[number]
	names, spans, n := slot(s.plain[number])
	r, err := Open(d, names, spans, s.reading(d))
	if err != nil {
		return err
	}
	got := make([]byte, n)
	decoded := r.Decode(spans, got, func(int64, int64) {}, regions.Options{Room: s.room})
	for i, region := range s.plain[number] {
		p := make([]byte, len(region.Bytes))
		read := r.Read(i, 0, p)
		if decoded == nil && (read != nil || !bytes.Equal(got[spans[i].Offset:spans[i].End()], region.Bytes)) || read == nil && !bytes.Equal(p, region.Bytes) {
			s.t.Fatalf("checkpoint %d: region %d has other bytes, and decoding gives %v, reading %v", number, i, decoded, read)
		}
	}
	return decoded
}

// kind returns the damage in an error, which must be of a kind that this package names.
func kind(t fataler, err error) *Damage {
	t.Helper()
	var d *Damage
	if !errors.As(err, &d) {
		t.Fatalf("not a damage: %v", err)
	}
	known := []error{ErrFormat, ErrOther, codec.ErrCorrupt, codec.ErrLength, codec.ErrReference, difference.ErrFormat, difference.ErrBase, difference.ErrLimit}
	if !slices.ContainsFunc(known, func(k error) bool { return errors.Is(err, k) }) {
		t.Fatalf("an error without a kind: %v", err)
	}
	return d
}

// Whichever bit of an object flips: a restore of every checkpoint that needs the object fails, or gives the right bytes.
func TestEveryBit(t *testing.T) {
	for _, method := range append(methods, referring) {
		s := smallTier(t, method)
		defer s.close()
		numbers := slices.Sorted(maps.Keys(s.plain))
		found, flips := 0, 0
		step := 23 // bits; it has no common divisor with 8
		if method == difference.Runs {
			step = 3
		}
		if raceDetector { // one goroutine does everything
			step = 101
		}
		for damaged, object := range s.objects {
			data := s.differences[damaged].Data
			for bit := int(damaged) % step; bit < 8*len(object); bit += step {
				if bit/8 >= int(data)+headerBytes {
					bit += 16 // the checksums are the same for all bits
				}
				if bit >= 8*len(object) {
					break
				}
				object[bit/8] ^= 1 << (bit % 8)
				for i, n := range numbers {
					if (i+bit/8)%len(numbers) > 1 { // each bit concerns some of them
						continue
					}
					source := slices.IndexFunc(s.differences[n].Sources, func(source model.Source) bool { return source.Number == damaged })
					if source < 0 && damaged != n {
						continue
					}
					flips++
					err := s.restore(n)
					if err == nil {
						continue
					}
					found++
					if d := kind(t, err); d.Source != source || (d.Region < 0) != (int64(bit/8) >= data) {
						t.Fatalf("%v: bit %d of object %d, with %d bytes of containers: checkpoint %d has %+v: %v", method, bit, damaged, data, n, d, err)
					}
				}
				object[bit/8] ^= 1 << (bit % 8)
			}
		}
		if flips < 100 || found < flips/2 {
			t.Errorf("%v: %d of %d restores failed", method, found, flips)
		}
		t.Logf("%v: %d of %d restores failed", method, found, flips)
	}
}

// A description of another object is refused, whatever it says else.
func TestOtherObject(t *testing.T) {
	s := smallTier(t, difference.Runs)
	defer s.close()
	const number = 6
	names, spans, _ := slot(s.plain[number])
	for what, change := range map[string]func(d *model.Difference, names []string, spans []model.Span) []string{
		"lineage":       func(d *model.Difference, _ []string, _ []model.Span) []string { d.Lineage++; return nil },
		"number":        func(d *model.Difference, _ []string, _ []model.Span) []string { d.Number++; return nil },
		"source":        func(d *model.Difference, _ []string, _ []model.Span) []string { d.Sources[0].Number--; return nil },
		"fewer sources": func(d *model.Difference, _ []string, _ []model.Span) []string { d.Sources = d.Sources[1:]; return nil },
		"data":          func(d *model.Difference, _ []string, _ []model.Span) []string { d.Data -= 16; d.Meta += 16; return nil },
		"name":          func(_ *model.Difference, names []string, _ []model.Span) []string { names[1] = "other"; return nil },
		"size":          func(_ *model.Difference, _ []string, spans []model.Span) []string { spans[0].Bytes--; return nil },
		"fewer names":   func(_ *model.Difference, names []string, _ []model.Span) []string { return names[1:] },
		"impossible": func(d *model.Difference, _ []string, _ []model.Span) []string {
			d.Sources = append(d.Sources, d.Sources...)
			return nil
		},
	} {
		d := *s.differences[number]
		d.Sources = slices.Clone(d.Sources)
		names, spans := slices.Clone(names), slices.Clone(spans)
		if other := change(&d, names, spans); other != nil {
			names = other
		}
		read := s.reading(s.differences[number])
		if what == "fewer sources" {
			read = func(source int, at int64, p []byte) error {
				if source >= 0 {
					source++
				}
				return s.reading(s.differences[number])(source, at, p)
			}
		}
		_, err := Open(&d, names, spans, read)
		if what == "impossible" {
			if !errors.Is(err, model.ErrDifference) {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if kind(t, err).Region != -1 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Errors of reads come back as they are, and what is wanted must lie in regions.
func TestErrors(t *testing.T) {
	s := smallTier(t, difference.Tree)
	defer s.close()
	const number = 5
	failed := errors.New("failed")
	d := s.differences[number]
	names, spans, n := slot(s.plain[number])
	count := 0
	for at := 1; ; at++ {
		count = 0
		r, err := Open(d, names, spans, func(source int, from int64, p []byte) error {
			if count++; count == at {
				return failed
			}
			return s.reading(d)(source, from, p)
		})
		if err == nil {
			err = r.Decode(spans, make([]byte, n), func(int64, int64) {}, regions.Options{Room: s.room})
		}
		if err == nil {
			break
		}
		if err != failed {
			t.Fatalf("read %d: %v", at, err)
		}
	}
	if count < 5 {
		t.Errorf("only %d reads", count)
	}
	r, _, _ := s.open(number)
	for _, wanted := range [][]model.Span{
		{{Offset: spans[0].End() - 1, Bytes: 2}}, {{Offset: n, Bytes: 1}}, {{Offset: 0, Bytes: 5}, {Offset: 4, Bytes: 5}}, {{Offset: 0, Bytes: -1}}, {{Offset: -1, Bytes: 5}},
		{{Offset: 0, Bytes: 1 << 62}},
	} {
		if err := r.Decode(wanted, make([]byte, n), func(int64, int64) {}, regions.Options{Room: s.room}); !errors.Is(err, ErrWanted) {
			t.Errorf("%v: %v", wanted, err)
		}
	}
	for _, part := range [][3]int64{{-1, 0, 1}, {int64(len(spans)), 0, 1}, {0, -1, 1}, {0, spans[0].Bytes, 1}, {0, 0, spans[0].Bytes + 1}} {
		if err := r.Read(int(part[0]), part[1], make([]byte, part[2])); !errors.Is(err, ErrWanted) {
			t.Errorf("%v: %v", part, err)
		}
	}
	draft := s.draft(s.plain[number])
	choices := make([]regions.Choice, 3)
	sources := make([]model.Source, len(draft.Sources()))
	for i, n := range draft.Sources() {
		sources[i].Number = n
	}
	if _, err := draft.Write(sources, choices[:1], 1<<40, nil, regions.Options{Room: s.room}); !errors.Is(err, ErrOptions) {
		t.Errorf("too few choices: %v", err)
	}
	if _, err := draft.Write(nil, choices, 1<<40, nil, regions.Options{Room: s.room}); !errors.Is(err, ErrSources) {
		t.Errorf("a draft with the sources %d is written without any: %v", draft.Sources(), err)
	}
}
