package object

import (
	"fmt"
	"slices"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
)

// Read gives bytes of an object, from an offset on: of the one with this index in model.Difference.Sources, or of the checkpoint's own if it is -1. Several
// goroutines may call it at once.
type Read func(source int, at int64, p []byte) error

// Own is the index of the checkpoint's own object.
const Own = -1

// Reader reads a checkpoint. Decode may be called by several goroutines at once, Read by one at a time.
type Reader struct {
	// Elsewhere is asked for the bytes of damaged containers that a call of Decode needs, once all others are decoded. Where it finds all of them, the call has
	// no error. Nothing here proves that they are right, so it is for a caller that compares checksums of the checkpoint. nil: damage ends the call at once.
	Elsewhere func(*Losses)
	// Unreadable tells whether an error of read is about these bytes alone, so that their containers count as damaged where there is an Elsewhere; nil: none is.
	Unreadable func(error) bool

	described *model.Difference
	read      Read
	spans     []model.Span
	heads     []*head // of the sources, then of the checkpoint's own object
	numbers   []uint32
	locations *difference.Map
	places    []*places // of the containers in each object
	reference int       // index of the object with whose containers those of the last one were encoded; -1: there is none
	kept      kept
}

// Open reads the metadata that locate the bytes of a checkpoint, whose regions have these names, and lie at these spans of a slot. It verifies that each object
// is the one that d describes. Errors about metadata are of type *Damage; those of read are returned as they are.
func Open(d *model.Difference, names []string, spans []model.Span, read Read) (*Reader, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	r := &Reader{described: d, read: read, spans: spans, reference: -1}
	for i := range d.Sources {
		r.numbers = append(r.numbers, d.Sources[i].Number)
	}
	r.numbers = append(r.numbers, d.Number)
	for i := range r.numbers {
		h, err := r.head(i)
		if err != nil {
			return nil, err
		}
		r.heads, r.places = append(r.heads, h), append(r.places, newPlaces(h))
	}
	if err := r.checkReference(); err != nil {
		return nil, err
	}
	m, err := r.resolve()
	if err != nil {
		return nil, err
	}
	r.locations = m
	if err := r.checkRegions(names); err != nil {
		return nil, &Damage{-1, Own, err}
	}
	if err := r.checkRuns(); err != nil {
		return nil, &Damage{-1, Own, err}
	}
	return r, nil
}

// Map is where the bytes of the checkpoint lie.
func (r *Reader) Map() *difference.Map { return r.locations }

// object returns the index that the caller knows an object by, and its lengths. The last one is the checkpoint's own.
func (r *Reader) object(i int) (source int, data, meta int64) {
	if i == len(r.described.Sources) {
		return Own, r.described.Data, r.described.Meta
	}
	s := &r.described.Sources[i]
	return i, s.Data, s.Meta
}

// index returns the index of an object by number.
func (r *Reader) index(number uint32) (int, bool) { return slices.BinarySearch(r.numbers, number) }

// headGuess is how many bytes of metadata are read at first: the table of most objects ends before.
const headGuess = 16 << 10

// head reads header and table of an object.
func (r *Reader) head(i int) (*head, error) {
	source, data, meta := r.object(i)
	p := make([]byte, min(meta, headGuess))
	if err := r.read(source, data, p); err != nil {
		return nil, err
	}
	h, err := parseHeader(p, meta)
	if err == nil && (h.number != r.numbers[i] || h.lineage != r.described.Lineage) {
		err = fmt.Errorf("%w: it is number %d of lineage %x", ErrOther, h.number, h.lineage)
	}
	if err != nil {
		return nil, &Damage{-1, source, err}
	}
	if n := headerBytes + h.table; n > int64(len(p)) {
		p = append(p, make([]byte, n-int64(len(p)))...)
		if err := r.read(source, data+headGuess, p[headGuess:]); err != nil {
			return nil, err
		}
	}
	if err := h.parseTable(p[:headerBytes+h.table], data); err != nil {
		return nil, &Damage{-1, source, err}
	}
	return h, nil
}

// body reads the body of an object's metadata, and returns its plain bytes.
func (r *Reader) body(i int) ([]byte, error) {
	source, data, _ := r.object(i)
	h := r.heads[i]
	p := make([]byte, h.body)
	if err := r.read(source, data+headerBytes+h.table, p); err != nil {
		return nil, err
	}
	err := h.checkBody(p)
	if err == nil {
		p, err = h.unpack(p)
	}
	if err != nil {
		return nil, &Damage{-1, source, err}
	}
	return p, nil
}

// resolve makes the map of the checkpoint. It follows the bases to the first object that needs none, and resolves from there.
func (r *Reader) resolve() (*difference.Map, error) {
	var pending []*difference.Difference // each is the base of the one before
	var indexes []int
	var m *difference.Map
	for i := len(r.numbers) - 1; m == nil; {
		body, err := r.body(i)
		if err != nil {
			return nil, err
		}
		source, _, _ := r.object(i)
		if r.heads[i].form == formMap {
			if m, err = parseMap(body, r.numbers[i], len(r.heads[i].firsts)); err != nil {
				return nil, &Damage{-1, source, err}
			}
			break
		}
		d, err := r.difference(i, body)
		if err != nil {
			return nil, &Damage{-1, source, err}
		}
		pending, indexes = append(pending, d), append(indexes, i)
		if !d.HasBase {
			break
		}
		base, ok := r.index(d.Base)
		if !ok { // a base is an earlier checkpoint, so this ends
			return nil, &Damage{-1, source, fmt.Errorf("%w: its base %d is not among the sources", ErrOther, d.Base)}
		}
		i = base
	}
	for j := len(pending) - 1; j >= 0; j-- {
		next, err := pending[j].Resolve(m)
		if err != nil {
			source, _, _ := r.object(indexes[j])
			return nil, &Damage{-1, source, err}
		}
		m = next
	}
	return m, nil
}

// difference reads the body of an object that has a difference.
func (r *Reader) difference(i int, body []byte) (*difference.Difference, error) {
	d, stored, err := difference.ParseMetadata(body)
	if err != nil {
		return nil, err
	}
	h := r.heads[i]
	if d.MetadataBytes() != uint64(len(body)) || d.Checkpoint != h.number || d.Seed != h.lineage || stored != uint64(h.stored()) || len(d.Regions) != len(h.firsts) {
		return nil, fmt.Errorf("%w: the difference in it is of another object", ErrFormat)
	}
	return d, nil
}

// checkRegions verifies that the regions are those that the caller expects.
func (r *Reader) checkRegions(names []string) error {
	if len(r.locations.Regions) != len(names) || len(names) != len(r.spans) {
		return fmt.Errorf("%w: it has %d regions, not %d", ErrOther, len(r.locations.Regions), len(names))
	}
	for i := range r.locations.Regions {
		if l := &r.locations.Regions[i]; l.Name != names[i] || l.Size != uint64(r.spans[i].Bytes) {
			return fmt.Errorf("%w: region %d is %q of %s, not %q of %s", ErrOther, i, l.Name, quantity.Exact(int64(l.Size)), names[i], quantity.Exact(r.spans[i].Bytes))
		}
	}
	return nil
}

// checkRuns verifies that each run lies in the first occurrences of an object that was opened.
func (r *Reader) checkRuns() error {
	for i := range r.locations.Regions {
		l := &r.locations.Regions[i]
		for j, run := range l.Runs {
			end := l.Size
			if j+1 < len(l.Runs) {
				end = l.Runs[j+1].At
			}
			n := end - run.At
			if run.Period > 0 {
				n = min(n, uint64(run.Period))
			}
			at, ok := r.index(run.Checkpoint)
			if !ok {
				return fmt.Errorf("%w: bytes of region %d lie in checkpoint %d, which is no source", ErrOther, i, run.Checkpoint)
			}
			if stored := uint64(r.heads[at].stored()); run.Offset > stored || n > stored-run.Offset {
				return fmt.Errorf("%w: bytes of region %d lie behind the first occurrences of checkpoint %d", ErrFormat, i, run.Checkpoint)
			}
		}
	}
	return nil
}
