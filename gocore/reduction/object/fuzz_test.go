package object

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/zeebo/xxh3"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/regions"
)

// split returns the parts of metadata; false if the header is not right enough for that.
func split(p []byte) (h *head, begin int64, ok bool) {
	h, err := parseHeader(p, int64(len(p)))
	if err != nil {
		return nil, 0, false
	}
	return h, headerBytes + h.table, true
}

// withBody returns the metadata with another body, of so many plain bytes, and makes its checksums right.
func withBody(p, body []byte, plain int64) []byte {
	le := binary.LittleEndian
	begin := headerBytes + le.Uint64(p[atTable:])
	p = append(slices.Clone(p[:begin]), body...)
	le.PutUint32(p[atBody:], uint32(len(body)))
	le.PutUint32(p[atPlain:], uint32(plain))
	le.PutUint64(p[atBodySum:], xxh3.Hash(body))
	le.PutUint64(p[atSum:], headSum(p[:begin]))
	return p
}

// unpacked returns metadata with the body as it was before it was compressed.
func unpacked(p []byte) []byte {
	h, begin, ok := split(p)
	if !ok {
		return p
	}
	body, err := h.unpack(p[begin:])
	if err != nil {
		return p
	}
	return withBody(p, body, int64(len(body)))
}

// sign makes the checksums of metadata right, so that mutations reach the rules behind them. It compresses the body if it was compressed.
func sign(p []byte) []byte {
	h, begin, ok := split(p)
	if !ok {
		return p
	}
	body, err := h.unpack(p[begin:])
	if err != nil {
		return withBody(p, p[begin:], h.plain)
	}
	body = slices.Clone(body)
	const sum = 8 // bytes, behind the metadata of a difference
	if h.form == formDifference && len(body) > sum {
		binary.LittleEndian.PutUint64(body[len(body)-sum:], xxh3.Hash(body[:len(body)-sum]))
	}
	plain := int64(len(body))
	if h.plain > h.body {
		if packed, err := pack(h.form, body); err == nil {
			body = packed
		}
	}
	return withBody(p, body, plain)
}

// tryOpen opens a checkpoint whose metadata, and those of a source, may be anything. What is accepted can be decoded, or fails with a Damage; nothing
// is read that the objects do not have.
func tryOpen(t *testing.T, s *tier, number uint32, own, source []byte, which int) {
	d := *s.differences[number]
	d.Sources = slices.Clone(d.Sources)
	objects := map[int][]byte{Own: append(slices.Clone(s.objects[number][:d.Data]), own...)}
	d.Meta = int64(len(own))
	for i := range d.Sources {
		object := s.objects[d.Sources[i].Number]
		if i == which {
			object = append(slices.Clone(object[:d.Sources[i].Data]), source...)
			d.Sources[i].Meta = int64(len(source))
		}
		objects[i] = object
	}
	if d.Check() != nil {
		return
	}
	read := func(source int, at int64, p []byte) error {
		if object := objects[source]; at < 0 || at > int64(len(object)) || int64(len(p)) > int64(len(object))-at {
			t.Fatalf("a read of %d bytes at %d of object %d, which has %d", len(p), at, source, len(object))
		}
		copy(p, objects[source][at:])
		return nil
	}
	names, spans, n := slot(s.plain[number])
	r, err := Open(&d, names, spans, read)
	if err != nil {
		kind(t, err)
		return
	}
	if runs, most := r.Map().Runs(), 100*(len(own)+len(source)+len(objects)*5000); runs > most {
		t.Fatalf("%d runs from metadata of %d and %d bytes", runs, len(own), len(source))
	}
	arrived := int64(0)
	err = r.Decode(spans, make([]byte, n), func(_, n int64) { arrived += n }, regions.Options{Room: s.room})
	if err != nil {
		kind(t, err)
	} else if total := total(spans); arrived != total {
		t.Fatalf("%d of %d bytes arrived", arrived, total)
	}
	for i, span := range spans {
		err := r.Read(i, 0, make([]byte, span.Bytes))
		if damage := new(Damage); err != nil && !errors.As(err, &damage) {
			t.Fatalf("region %d: %v", i, err)
		}
	}
}

func total(spans []model.Span) (n int64) {
	for _, s := range spans {
		n += s.Bytes
	}
	return n
}

func FuzzOpen(f *testing.F) {
	var tiers []*tier
	for i, method := range []difference.Method{difference.Basic, difference.Tree, difference.Runs} {
		s := newTier(f, Options{Method: method, Chunk: 32, Lineage: 3, Record: 100_000, handicap: uint64(i%2) << 30})
		for _, regions := range smallHistory() {
			s.add(regions)
		}
		tiers = append(tiers, s)
	}
	tiers = append(tiers, wholeTier(f))
	for i, s := range tiers {
		defer s.close()
		for number, d := range s.differences {
			own := s.objects[number][d.Data:]
			f.Add(byte(i), byte(number-1), own, []byte{}, byte(200))
			f.Add(byte(i), byte(number-1), unpacked(own), []byte{}, byte(200))
			for which, source := range d.Sources {
				f.Add(byte(i), byte(number-1), own, s.objects[source.Number][source.Data:], byte(which))
				f.Add(byte(i), byte(number-1), unpacked(own), unpacked(s.objects[source.Number][source.Data:]), byte(which))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which, number byte, own, source []byte, damaged byte) {
		s := tiers[int(which)%len(tiers)]
		n := 1 + uint32(number)%uint32(len(s.plain))
		own, source = slices.Clone(own), slices.Clone(source)
		tryOpen(t, s, n, own, source, int(damaged))
		tryOpen(t, s, n, sign(own), sign(source), int(damaged))
	})
}

// The compact form of any map that is read is that of the same map again.
func FuzzMap(f *testing.F) {
	tiers := []*tier{wholeTier(f)}
	for _, method := range methods {
		tiers = append(tiers, smallTier(f, method))
	}
	for _, s := range tiers {
		defer s.close()
		for number, d := range s.differences {
			meta := s.objects[number][d.Data:]
			if h, err := parseHeader(meta, d.Meta); err == nil && h.form == formMap {
				body, err := h.unpack(meta[headerBytes+h.table:])
				if err != nil {
					f.Fatal(err)
				}
				f.Add(body, number, len(s.plain[number]))
			}
		}
	}
	f.Fuzz(func(t *testing.T, p []byte, number uint32, regions int) {
		m, err := parseMap(p, number, regions&0xff)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		if m.Runs() > len(p) || len(m.Regions) != regions&0xff {
			t.Fatalf("%d runs and %d regions from %d bytes", m.Runs(), len(m.Regions), len(p))
		}
		again, err := parseMap(appendMap(nil, m, 1<<p[0]), number, regions&0xff)
		if err != nil || string(again.Append(nil)) != string(m.Append(nil)) {
			t.Fatalf("written and read it is %+v, not %+v: %v", again, m, err)
		}
	})
}

// Whatever the bytes of a body and the length that is claimed: unpack gives that many bytes or an error, and allocates no more than a small multiple of them
// beside the decoder.
func FuzzUnpack(f *testing.F) {
	for _, form := range []form{formDifference, formMap} {
		for _, method := range methods {
			s := smallTier(f, method)
			defer s.close()
			for number, d := range s.differences {
				meta := s.objects[number][d.Data:]
				if h, begin, ok := split(meta); ok && h.plain > h.body {
					f.Add(byte(form), uint32(h.plain), meta[begin:])
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, plain uint32, body []byte) {
		h := &head{form: form(which), body: int64(len(body)), plain: int64(plain % (1 << 24))}
		if h.plain < h.body {
			return
		}
		got, err := h.unpack(body)
		switch {
		case err == nil && int64(len(got)) != h.plain:
			t.Fatalf("%d bytes, not %d", len(got), h.plain)
		case err != nil && !errors.Is(err, ErrFormat) && !errors.Is(err, difference.ErrFormat):
			t.Fatalf("an error without a kind: %v", err)
		}
	})
}
