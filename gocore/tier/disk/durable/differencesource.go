package durable

import (
	"errors"
	"fmt"
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/description"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
	reduced "velocpy/gocore/reduction/object"
	"velocpy/gocore/tier/disk/catalog"
)

// differenceSource reads and decodes a piece of the row of a difference. Its bytes may lie in any of the row's objects, in any order.
type differenceSource struct {
	*piece
	*differenceReader
	window *window
}

// differenceReader reads the checkpoint of a row from its objects: the row's own one, and its sources.
type differenceReader struct {
	of     *catalog.Row
	check  *Check
	data   reader
	rooms  []run // of the sources, then of the row's own object, without what follows the object in its last block
	gone   []run // parts of the rooms that no data file has
	opened bool
	reader *reduced.Reader
	bad    *objectFault // why there is no reader
}

// objectFault says why bytes of an object cannot be read, or are not those that were written.
type objectFault struct {
	source int // index in the row's Difference.Sources; reduced.Own: the row's own object
	lies   run
	fault  Kind
	why    string
	cause  error // of a read that failed
}

func (f *objectFault) Error() string { return f.why }
func (f *objectFault) Unwrap() error { return f.cause }

// difference returns the reader of a row. A window keeps the last one, as pieces of one row mostly follow each other. One with long metadata is kept by the
// check instead, so that there is one at most; the caller then holds long.
func (c *Check) difference(w *window, row *catalog.Row) *differenceReader {
	held := &w.difference
	if metaBytes(row) >= longContainer {
		held = &c.longest
	}
	if *held == nil || (*held).of != row || (*held).check != c {
		*held = &differenceReader{of: row, check: c, data: w.data}
		(*held).place()
	}
	return *held
}

// metaBytes is the length of the metadata of all objects of a difference as they are stored. What a reader holds grows with it; where bodies are compressed it is
// several times as much.
func metaBytes(row *catalog.Row) int64 {
	n := row.Difference.Meta
	for _, s := range row.Difference.Sources {
		n += s.Meta
	}
	return n
}

// place finds the rooms, and the parts of them that are missing.
func (r *differenceReader) place() {
	claims, _ := r.check.v.identity.claims(r.of) // the survey has verified that the row has rooms
	for _, c := range append(claims[1:len(claims):len(claims)], claims[0]) {
		lies := run{c.from, c.from + c.data + c.meta}
		r.rooms = append(r.rooms, lies)
		r.gone = append(r.gone, r.check.missing(lies.from, lies.end-lies.from)...)
	}
}

// room returns where an object lies.
func (r *differenceReader) room(source int) run {
	if source == reduced.Own {
		source = len(r.rooms) - 1
	}
	return r.rooms[source]
}

// metadata returns where the metadata of an object lies, and containers where its containers do.
func (r *differenceReader) metadata(source int) run {
	lies := r.room(source)
	lies.from += r.packed(source)
	return lies
}

func (r *differenceReader) containers(source int) run {
	lies := r.room(source)
	lies.end = lies.from + r.packed(source)
	return lies
}

// packed is the length of the containers of an object.
func (r *differenceReader) packed(source int) int64 {
	if source == reduced.Own {
		return r.of.Difference.Data
	}
	return r.of.Difference.Sources[source].Data
}

// open reads the metadata, if that was not done yet.
func (r *differenceReader) open() *objectFault {
	if !r.opened {
		r.opened = true
		if r.bad = r.missing(); r.bad != nil {
			return r.bad
		}
		l := &r.of.Layout.Layout
		var err error
		if r.reader, err = reduced.Open(r.of.Difference, description.Names(l), l.Spans, r.bytes); err != nil {
			r.bad = r.explain(err)
		}
	}
	return r.bad
}

// missing returns a fault if metadata are missing. So a reader takes no memory for metadata that only a damaged catalog claims.
func (r *differenceReader) missing() *objectFault {
	for i := range r.rooms {
		source := i
		if i == len(r.rooms)-1 {
			source = reduced.Own
		}
		if bad := r.lacks(source, r.metadata(source)); bad != nil {
			return bad
		}
	}
	return nil
}

// lacks returns a fault if a part of a range of an object is missing.
func (r *differenceReader) lacks(source int, lies run) *objectFault {
	for _, g := range r.gone {
		if g.from < lies.end && lies.from < g.end {
			return &objectFault{source, run{max(g.from, lies.from), min(g.end, lies.end)}, Missing, r.check.gone(g), nil}
		}
	}
	return nil
}

// bytes reads bytes of an object. Its errors are of type *objectFault.
func (r *differenceReader) bytes(source int, at int64, p []byte) error {
	room := r.room(source)
	lies := run{room.from + at, room.from + at + int64(len(p))}
	if bad := r.lacks(source, lies); bad != nil {
		return bad
	}
	if err := r.data.Read(lies.from, p); err != nil {
		return &objectFault{source, lies, Unreadable, err.Error(), err}
	}
	return nil
}

// explain returns what an error of the reader says.
func (r *differenceReader) explain(err error) *objectFault {
	var fault *objectFault
	var damage *reduced.Damage
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &damage) && damage.Region < 0:
		return &objectFault{damage.Source, r.metadata(damage.Source), Changed, damage.Err.Error(), nil}
	case errors.As(err, &damage):
		return &objectFault{damage.Source, r.containers(damage.Source), Changed, damage.Err.Error(), nil}
	}
	return &objectFault{reduced.Own, r.metadata(reduced.Own), Changed, err.Error(), nil}
}

// whose names the object that has a fault.
func (r *differenceReader) whose(f *objectFault) string {
	if f.source == reduced.Own {
		return "its object: "
	}
	return fmt.Sprintf("the object of an earlier checkpoint, number %d of the lineage: ", r.of.Difference.Sources[f.source].Number)
}

// about returns the suspicion about leaves that a fault in an object gives. Its reason names the object: damage to it concerns all checkpoints that need it.
func (s *differenceSource) about(from, end int, f *objectFault) suspicion {
	return s.suspect(from, end, f.lies, f.fault, s.whose(f)+f.why)
}

func (s *differenceSource) lies(int) run { return s.piece.lies }

func (s *differenceSource) behind(leaf int, _ run) int { return leaf + 1 }

func (s *differenceSource) read(leaf int) ([]byte, *suspicion) {
	start := int64(leaf) * checksum.LeafBytes
	to := s.window.leafBuffer()[:min(checksum.LeafBytes, s.row.Layout.Spans[s.region].Bytes-start)]
	if err := s.reader.Read(s.region, start, to); err != nil {
		bad := s.about(leaf, leaf+1, s.explain(err))
		return nil, &bad
	}
	return to, nil
}

// mostNamed bounds the objects that a reason lists.
const mostNamed = 10

// changed names the objects that have the bytes.
func (s *differenceSource) changed(from, end int) suspicion {
	var numbers []uint32
	bytes := min(uint64(end)*checksum.LeafBytes, uint64(s.row.Layout.Spans[s.region].Bytes))
	s.reader.Map().Regions[s.region].Each(uint64(from)*checksum.LeafBytes, bytes, func(r difference.Run, _ uint64) bool {
		if !slices.Contains(numbers, r.Checkpoint) {
			numbers = append(numbers, r.Checkpoint)
		}
		return len(numbers) < mostNamed
	})
	slices.Sort(numbers)
	source := reduced.Own
	if !slices.Contains(numbers, s.row.Difference.Number) && len(numbers) > 0 {
		source = slices.IndexFunc(s.row.Difference.Sources, func(x model.Source) bool { return x.Number == numbers[0] })
	}
	why := fmt.Sprintf("%s; the objects with the numbers %d of the lineage have them", mismatch, numbers)
	return s.suspect(from, end, s.containers(source), Changed, why)
}
