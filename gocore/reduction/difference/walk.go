package difference

import "fmt"

// label says what a piece is.
type label uint8

const (
	fixed label = iota
	first
	shifted
)

// piece is a range of a region's bytes with one label and, unless it is fixed, one source.
type piece struct {
	region     int
	at, bytes  uint64
	period     uint64 // bytes of the source, if it repeats; else 0
	label      label
	checkpoint uint32
	offset     uint64
}

// walk visits the pieces of the whole checkpoint in the order of positions, without gaps. It verifies every rule that the metadata has to keep, given the
// length of the first occurrences: it does so before it visits the piece concerned.
type walk struct {
	d         *Difference
	data      uint64 // length of the first occurrences
	visit     func(piece) error
	base      uint64 // position of the region's first chunk
	region    int
	at        uint64 // chunk within the region
	used      uint64 // bytes of first occurrences so far
	nextFirst int
	nextShift int
	period    uint64 // of the piece to emit
	anyFixed  bool
}

func (d *Difference) walk(data uint64, visit func(piece) error) error {
	w := walk{d: d, data: data, visit: visit}
	for i := range d.Regions {
		w.region, w.at = i, 0
		n := d.chunks(&d.Regions[i])
		if err := w.walkRegion(n); err != nil {
			return err
		}
		w.base += n
	}
	switch {
	case w.nextFirst < len(d.First) || w.nextShift < len(d.Shifted):
		return fmt.Errorf("%w: an entry lies behind the last region", ErrFormat)
	case w.used != data:
		return fmt.Errorf("%w: of %[3]d first occurrences, in bytes, %[2]d have a position", ErrFormat, w.used, data)
	case w.anyFixed && !d.HasBase:
		return fmt.Errorf("%w: fixed duplicates without a base", ErrFormat)
	case !w.anyFixed && d.HasBase:
		return fmt.Errorf("%w: a base without fixed duplicates", ErrFormat)
	}
	return nil
}

func (w *walk) walkRegion(n uint64) error {
	switch w.d.Method {
	case Full:
		return w.emit(n, first, 0, 0)
	case Basic:
		return w.walkBits(n)
	}
	for w.at < n {
		start, end := w.base+w.at, w.base+n
		f, s := end, end
		if w.nextFirst < len(w.d.First) {
			f = min(f, w.d.First[w.nextFirst].Position)
		}
		if w.nextShift < len(w.d.Shifted) {
			s = min(s, w.d.Shifted[w.nextShift].Position)
		}
		if f < start || s < start || f == s && f < end {
			return fmt.Errorf("%w: entries overlap or are out of order at position %d", ErrFormat, start)
		}
		if err := w.step(start, f, s, n); err != nil {
			return err
		}
	}
	return nil
}

// step visits one gap or one entry: the next first occurrence is at position f, the next shifted duplicate at s.
func (w *walk) step(start, f, s, n uint64) error {
	switch {
	case min(f, s) > start:
		return w.emit(min(f, s)-start, fixed, 0, 0)
	case f == start:
		count, err := w.count(w.d.First[w.nextFirst].Extent, n)
		if err != nil {
			return err
		}
		w.nextFirst++
		return w.emit(count, first, 0, 0)
	}
	shift := &w.d.Shifted[w.nextShift]
	count, err := w.count(shift.Extent, n)
	if err != nil {
		return err
	}
	w.nextShift++
	if shift.Repeat {
		if w.d.Method != Runs || count < 2 || (w.at+count)*uint64(w.d.Chunk) > w.d.Regions[w.region].Size {
			return fmt.Errorf("%w: the entry at position %d cannot repeat its source", ErrFormat, start)
		}
		w.period = uint64(w.d.Chunk)
	}
	err = w.emit(count, shifted, shift.Checkpoint, shift.Offset)
	w.period = 0
	return err
}

// count returns how many chunks an entry at the present chunk covers.
func (w *walk) count(extent uint32, n uint64) (uint64, error) {
	switch {
	case w.d.Method == List && extent == 0:
		return 1, nil
	case w.d.Method == Runs && extent > 0 && uint64(extent) <= n-w.at:
		return uint64(extent), nil
	case w.d.Method == Tree && extent < 64 && w.at&(1<<extent-1) == 0 && (extent == 0 || n > 1<<(extent-1)):
		return min(1<<extent, n-w.at), nil
	}
	return 0, fmt.Errorf("%w: the entry at position %d has the extent %d", ErrFormat, w.base+w.at, extent)
}

// walkBits joins neighbouring chunks of one label to pieces.
func (w *walk) walkBits(n uint64) error {
	for w.at < n {
		start := w.base + w.at
		end := start + 1
		set := w.bit(start)
		for end < w.base+n && w.bit(end) == set {
			end++
		}
		kind := fixed
		if set {
			kind = first
		}
		if err := w.emit(end-start, kind, 0, 0); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) bit(position uint64) bool { return w.d.Changed[position/8]>>(position%8)&1 == 1 }

// emit visits a piece of so many chunks from the present one on.
func (w *walk) emit(count uint64, kind label, checkpoint uint32, offset uint64) error {
	if count == 0 {
		return nil
	}
	chunk, size := uint64(w.d.Chunk), w.d.Regions[w.region].Size
	p := piece{region: w.region, at: w.at * chunk, period: w.period, label: kind, checkpoint: checkpoint, offset: offset}
	p.bytes = min((w.at+count)*chunk, size) - p.at
	switch kind {
	case fixed:
		w.anyFixed = true
	case first:
		p.checkpoint, p.offset = w.d.Checkpoint, w.used
		if w.used += p.bytes; w.used > w.data {
			return fmt.Errorf("%w: the first occurrences end before position %d", ErrFormat, w.base+w.at)
		}
	case shifted:
		if p.checkpoint > w.d.Checkpoint {
			return fmt.Errorf("%w: the source at position %d is a later checkpoint", ErrFormat, w.base+w.at)
		}
		length := p.bytes
		if p.period > 0 {
			length = p.period
		}
		if p.checkpoint == w.d.Checkpoint && (p.offset > w.data || length > w.data-p.offset) || p.offset > MaxBytes {
			return fmt.Errorf("%w: the source at position %d ends behind the first occurrences", ErrFormat, w.base+w.at)
		}
	}
	w.at += count
	return w.visit(p)
}
