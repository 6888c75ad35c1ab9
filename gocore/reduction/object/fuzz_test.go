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

// sign makes the checksums of metadata right, so that mutations reach the rules behind them.
func sign(p []byte) {
	if len(p) < headerBytes {
		return
	}
	le := binary.LittleEndian
	table := le.Uint64(p[atTable:])
	if table > uint64(len(p)-headerBytes) {
		return
	}
	body := p[headerBytes+table:]
	const sum = 8 // bytes, behind the metadata of a difference
	if p[atForm] == byte(formDifference) && len(body) > sum {
		le.PutUint64(body[len(body)-sum:], xxh3.Hash(body[:len(body)-sum]))
	}
	le.PutUint64(p[atBodySum:], xxh3.Hash(body))
	le.PutUint64(p[atSum:], headSum(p[:headerBytes+table]))
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
		defer s.close()
		for _, regions := range smallHistory() {
			s.add(regions)
		}
		tiers = append(tiers, s)
		for number, d := range s.differences {
			own := s.objects[number][d.Data:]
			f.Add(byte(i), byte(number), own, []byte{}, byte(200))
			for which, source := range d.Sources {
				f.Add(byte(i), byte(number), own, s.objects[source.Number][source.Data:], byte(which))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which, number byte, own, source []byte, damaged byte) {
		s := tiers[int(which)%len(tiers)]
		n := 1 + uint32(number)%uint32(len(s.plain))
		own, source = slices.Clone(own), slices.Clone(source)
		tryOpen(t, s, n, own, source, int(damaged))
		sign(own)
		sign(source)
		tryOpen(t, s, n, own, source, int(damaged))
	})
}

// The compact form of any map that is read is that of the same map again.
func FuzzMap(f *testing.F) {
	for _, method := range methods {
		s := smallTier(f, method)
		defer s.close()
		for number, d := range s.differences {
			meta := s.objects[number][d.Data:]
			if h, err := parseHeader(meta, d.Meta); err == nil && h.form == formMap {
				f.Add(meta[headerBytes+h.table:], number, len(s.plain[number]))
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
