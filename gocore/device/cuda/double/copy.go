package double

import (
	"slices"

	"velocpy/gocore/device/cuda"
)

// kind is the kind of memory of a range, as far as a copy is concerned.
type kind int

const (
	onDevice kind = iota
	pinnedHost
	pageable
	astride // across the border of two kinds
)

// stagedBytes is the size up to which a copy from pageable memory does not wait for its stream: the driver keeps the bytes.
const stagedBytes = 1 << 20

// kind is determined at the call of a copy.
func (d *Driver) kind(s Span) kind {
	if p := d.at(s.At); p != nil {
		if p.span.holds(s) && (d.reachable(s) || !p.partly(s)) {
			return onDevice
		}
		return astride
	}
	for _, p := range d.pins {
		switch {
		case p.span.holds(s):
			return pinnedHost
		case p.span.meets(s):
			return astride
		}
	}
	if slices.ContainsFunc(d.places, func(p *place) bool { return p.span.meets(s) }) {
		return astride
	}
	return pageable
}

// Copy implements cuda.Driver.
func (d *Driver) Copy(c cuda.Context, to, from cuda.Pointer, n int64, at cuda.Stream) error {
	const call = "Copy"
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.in(call, c, at)
	if err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if n < 0 || to == 0 || from == 0 {
		return fail(call, cuda.InvalidValue)
	}
	target, source := d.kind(span(to, n)), d.kind(span(from, n))
	if target == astride || source == astride {
		return fail(call, cuda.InvalidValue)
	}
	w := d.copying(span(to, n), span(from, n), source == pageable && target == onDevice && n <= stagedBytes)
	d.put(s, w)
	if !waited(target, source, n) {
		return nil
	}
	d.outside(func() { <-w.done })
	d.watch.learn(w)
	if s.gpu.lost != 0 {
		return fail(call, s.gpu.lost)
	}
	return nil
}

// waited tells whether a copy is complete when the call returns.
func waited(target, source kind, n int64) bool {
	switch {
	case target == onDevice && source == pageable:
		return n > stagedBytes
	case target == onDevice:
		return false
	}
	return source != onDevice || target == pageable
}

// copying makes the work of a copy; staged: the source is read now.
func (d *Driver) copying(to, from Span, staged bool) *work {
	w := &work{what: "copy of " + from.String() + " to " + to.String(), writes: []Span{to}}
	if staged {
		stage := slices.Clone(bytesAt(from))
		w.run = func() cuda.Code { d.move(bytesAt(to), stage); return 0 }
		return w
	}
	w.reads = []Span{from}
	w.run = func() cuda.Code { d.move(bytesAt(to), bytesAt(from)); return 0 }
	return w
}

// move copies, with a pause in between if the double has delays.
func (d *Driver) move(to, from []byte) {
	half := 0
	if d.cfg.Delay > 0 {
		d.mu.Lock()
		half = d.random.IntN(len(to))
		d.mu.Unlock()
	}
	copy(to[:half], from[:half])
	if half > 0 {
		d.mu.Lock()
		d.pause()
		d.mu.Unlock()
	}
	copy(to[half:], from[half:])
}
