package object

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"velocpy/gocore/reduction/difference"
)

// place is how a run's offset is written. It is in the lowest bits of the run's first integer.
type place uint64

const (
	placeNext    place = 0 // behind the run before it of the same checkpoint
	placeAligned place = 1 // as far from the run before it, of the same checkpoint and region, as in the region
	placeOther   place = 2 // the next one of the list of offsets
	placeRepeat  place = 3 // as placeOther, and the source is one chunk that repeats

	placeBits = 2
)

// cursor is where the last run of a checkpoint was.
type cursor struct {
	next       uint64 // offset behind it
	at, offset uint64 // its place in the region, and in the first occurrences
	region     int    // in which at is; -1: in none
}

// aligned is the offset that continues the last run's alignment.
func (c *cursor) aligned(region int, at uint64) (uint64, bool) {
	return c.offset + (at - c.at), c.region == region
}

// move makes a run the last one.
func (c *cursor) move(region int, r difference.Run, bytes uint64) {
	if r.Period > 0 {
		c.next = r.Offset + uint64(r.Period)
		return
	}
	*c = cursor{next: r.Offset + bytes, at: r.At, offset: r.Offset, region: region}
}

func cursors(n int) []cursor {
	list := make([]cursor, n)
	for i := range list {
		list[i].region = -1
	}
	return list
}

// appendMap appends the compact form of a map, whose runs are of whole chunks and not void.
func appendMap(to []byte, m *difference.Map, chunk int) []byte {
	references := m.References()
	to = append(to, byte(bits.TrailingZeros(uint(chunk))))
	to = binary.AppendUvarint(to, uint64(len(references)))
	before := uint64(0)
	for _, c := range references {
		to = binary.AppendUvarint(to, uint64(c)-before)
		before = uint64(c)
	}
	w := mapWriter{chunk: uint64(chunk), number: m.Checkpoint, references: references, cursors: cursors(len(references) + 1)}
	var rows []byte
	for i := range m.Regions {
		l := &m.Regions[i]
		rows = binary.AppendUvarint(rows, uint64(len(l.Name)))
		rows = append(rows, l.Name...)
		rows = binary.AppendUvarint(rows, l.Size)
		for j, r := range l.Runs {
			end := l.Size
			if j+1 < len(l.Runs) {
				end = l.Runs[j+1].At
			}
			rows = w.run(rows, i, r, end-r.At)
		}
	}
	return append(appendOffsets(to, w.offsets), rows...)
}

type mapWriter struct {
	chunk      uint64
	number     uint32
	references []uint32
	cursors    []cursor
	offsets    []uint64 // of runs whose place does not give it
}

func (w *mapWriter) run(to []byte, region int, r difference.Run, bytes uint64) []byte {
	index := 0
	if r.Checkpoint != w.number {
		at, _ := slices.BinarySearch(w.references, r.Checkpoint)
		index = at + 1
	}
	c := &w.cursors[index]
	aligned, ok := c.aligned(region, r.At)
	how := placeOther
	switch {
	case r.Period > 0:
		how = placeRepeat
	case r.Offset == c.next:
		how = placeNext
	case ok && r.Offset == aligned:
		how = placeAligned
	}
	to = binary.AppendUvarint(to, (bytes+w.chunk-1)/w.chunk<<placeBits|uint64(how))
	to = binary.AppendUvarint(to, uint64(index))
	if how >= placeOther {
		w.offsets = append(w.offsets, r.Offset)
	}
	c.move(region, r, bytes)
	return to
}

// parseMap reads the compact form of a checkpoint's map, with so many regions. Any bytes are safe: memory is bounded by a small multiple of theirs.
func parseMap(p []byte, number uint32, regions int) (*difference.Map, error) {
	if len(p) == 0 || p[0] > 16 || !difference.ValidChunk(1<<p[0]) {
		return nil, fmt.Errorf("%w: chunk length of the map", ErrFormat)
	}
	r := mapReader{in: numbers{p[1:]}, chunk: 1 << p[0], checkpoints: []uint32{number}}
	if err := r.references(); err != nil {
		return nil, err
	}
	var ok bool
	if r.offsets, ok = parseOffsets(&r.in); !ok {
		return nil, fmt.Errorf("%w: offsets of the map", ErrFormat)
	}
	if regions > len(r.in.rest) {
		return nil, fmt.Errorf("%w: %d regions in the map", ErrFormat, regions)
	}
	located := make([]difference.Located, regions)
	for i := range located {
		if !r.region(i, &located[i]) {
			return nil, fmt.Errorf("%w: region %d of the map", ErrFormat, i)
		}
	}
	if len(r.in.rest) > 0 || r.offsets.n > r.offsets.used {
		return nil, fmt.Errorf("%w: superfluous bytes or offsets in the map", ErrFormat)
	}
	m, err := difference.NewMap(number, located)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	return m, nil
}

type mapReader struct {
	in          numbers
	chunk       uint64
	checkpoints []uint32 // by index; the first is the map's own
	cursors     []cursor
	offsets     offsets
}

func (r *mapReader) references() error {
	n, ok := r.in.next(difference.MaxReferences)
	if !ok || n > uint64(len(r.in.rest)) {
		return fmt.Errorf("%w: references of the map", ErrFormat)
	}
	number, c := r.checkpoints[0], uint64(0)
	for i := range n {
		step, ok := r.in.next(uint64(number))
		if c += step; !ok || c >= uint64(number) || i > 0 && step == 0 {
			return fmt.Errorf("%w: reference %d of the map", ErrFormat, i)
		}
		r.checkpoints = append(r.checkpoints, uint32(c))
	}
	r.cursors = cursors(len(r.checkpoints))
	return nil
}

func (r *mapReader) region(i int, l *difference.Located) bool {
	length, ok := r.in.next(difference.MaxName)
	if !ok {
		return false
	}
	name, ok := r.in.take(length)
	if !ok {
		return false
	}
	l.Name = string(name)
	if l.Size, ok = r.in.next(difference.MaxBytes); !ok {
		return false
	}
	for at := uint64(0); at < l.Size; {
		run, bytes, ok := r.run(i, at, l.Size-at)
		if !ok {
			return false
		}
		l.Runs = append(l.Runs, run)
		at += bytes
	}
	return true
}

// run reads the run from at on, of at most so many bytes.
func (r *mapReader) run(region int, at, most uint64) (run difference.Run, bytes uint64, ok bool) {
	v, ok := r.in.next(1<<63 - 1)
	chunks, how := v>>placeBits, place(v&(1<<placeBits-1))
	if !ok || chunks == 0 || chunks > (most+r.chunk-1)/r.chunk {
		return run, 0, false
	}
	bytes = min(chunks*r.chunk, most)
	index, ok := r.in.next(uint64(len(r.checkpoints) - 1))
	if !ok {
		return run, 0, false
	}
	c := &r.cursors[index]
	run = difference.Run{At: at, Offset: c.next, Checkpoint: r.checkpoints[index]}
	switch how {
	case placeAligned:
		run.Offset, ok = c.aligned(region, at)
	case placeOther, placeRepeat:
		run.Offset, ok = r.offsets.next()
		if how == placeRepeat {
			run.Period = uint32(r.chunk)
		}
	}
	if !ok || run.Offset > difference.MaxBytes {
		return run, 0, false
	}
	c.move(region, run, bytes)
	return run, bytes, true
}
