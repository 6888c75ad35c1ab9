package double

import (
	"slices"

	"velocpy/gocore/device"
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

// copies makes the work of copies.
type copies struct {
	*state
}

// kind is determined at the call of a copy.
func (cp *copies) kind(s Span) kind {
	if p := cp.virtual.at(s.At); p != nil {
		if p.span.holds(s) && (cp.virtual.reachable(s) || !p.partly(s)) {
			return onDevice
		}
		return astride
	}
	for _, p := range cp.pinned.pins {
		switch {
		case p.span.holds(s):
			return pinnedHost
		case p.span.meets(s):
			return astride
		}
	}
	if slices.ContainsFunc(cp.virtual.places, func(p *place) bool { return p.span.meets(s) }) {
		return astride
	}
	return pageable
}

// Copy implements cuda.Driver.
func (cp *copies) Copy(c cuda.Context, to, from cuda.Pointer, n int64, at cuda.Stream) error {
	return cp.copyBy("Copy", c, to, from, n, at)
}

// CopyAll implements cuda.Driver. The copies are queued in any order. It refuses pageable memory.
func (cp *copies) CopyAll(c cuda.Context, all []device.Move, at cuda.Stream) error {
	if len(all) == 0 {
		return nil
	}
	cp.mu.Lock()
	first := cp.queues.random.IntN(len(all))
	cp.mu.Unlock()
	for i := range all {
		m := all[(first+i)%len(all)]
		cp.mu.Lock()
		refused := m.Bytes > 0 && (cp.kind(span(m.To, m.Bytes)) == pageable || cp.kind(span(m.From, m.Bytes)) == pageable)
		cp.mu.Unlock()
		if refused {
			return fail("CopyAll", cuda.InvalidValue)
		}
		if err := cp.copyBy("CopyAll", c, m.To, m.From, m.Bytes, at); err != nil {
			return err
		}
	}
	return nil
}

func (cp *copies) copyBy(call string, c cuda.Context, to, from cuda.Pointer, n int64, at cuda.Stream) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	s, err := cp.streams.in(call, c, at)
	if err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	if n < 0 || to == 0 || from == 0 {
		return fail(call, cuda.InvalidValue)
	}
	target, source := cp.kind(span(to, n)), cp.kind(span(from, n))
	if target == astride || source == astride {
		return fail(call, cuda.InvalidValue)
	}
	w := cp.copying(span(to, n), span(from, n), source == pageable && target == onDevice && n <= stagedBytes)
	cp.queues.put(s, w)
	if !waited(target, source, n) {
		return nil
	}
	cp.outside(func() { <-w.done })
	cp.queues.watch.learn(w)
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
func (cp *copies) copying(to, from Span, staged bool) *work {
	w := &work{what: "copy of " + from.String() + " to " + to.String(), writes: []Span{to}}
	if staged {
		stage := slices.Clone(bytesAt(from))
		w.run = func() cuda.Code { cp.move(bytesAt(to), stage); return 0 }
		return w
	}
	w.reads = []Span{from}
	w.run = func() cuda.Code { cp.move(bytesAt(to), bytesAt(from)); return 0 }
	return w
}

// move copies, with a pause in between if the double has delays.
func (cp *copies) move(to, from []byte) {
	half := 0
	if cp.cfg.Delay > 0 {
		cp.mu.Lock()
		half = cp.queues.random.IntN(len(to))
		cp.mu.Unlock()
	}
	copy(to[:half], from[:half])
	if half > 0 {
		cp.mu.Lock()
		cp.queues.pause()
		cp.mu.Unlock()
	}
	copy(to[half:], from[half:])
}
