package regions

import (
	"errors"
	"fmt"
	"sync"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
)

// Plain gives the bytes of a checkpoint's slot from an offset on: in memory of its own, or in room, whose length says how many. One goroutine calls it at a
// time, and offsets ascend. The bytes must not change before the next call with the same room. After an error it is not called again.
type Plain func(at int64, room []byte) ([]byte, error)

// Sink takes the encoded bytes, each of them once and in their order, in whole blocks of BlockBytes: zeros fill the last one, behind the containers and what
// EncodeBefore puts behind them. One goroutine calls it at a time. It may use the bytes until it returns.
type Sink func(p []byte) error

// Behind gives the bytes that follow the containers.
type Behind func(*model.Encoding) ([]byte, error)

// outBytes is how many encoded bytes are collected for one call of a sink.
const outBytes = 4 << 20

// behindBytes is how many bytes behind the containers are collected at once.
const behindBytes = 64 << 10

// Encode encodes regions, which lie at these spans of a slot, in containers of part bytes (a multiple of model.PartGrain). There is a choice for each region. It
// fails with ErrLarge as soon as the containers have more than most bytes.
func Encode(spans []model.Span, choices []Choice, part, most int64, from Plain, to Sink, o Options) (*model.Encoding, error) {
	return EncodeBefore(func(*model.Encoding) ([]byte, error) { return nil, nil }, spans, choices, part, most, from, to, o)
}

// EncodeBefore is Encode with more bytes directly behind the last container. behind returns them, when the lengths of the containers are known. They count
// among the most bytes.
func EncodeBefore(behind Behind, spans []model.Span, choices []Choice, part, most int64, from Plain, to Sink, o Options) (*model.Encoding, error) {
	e := &encoder{choices: choices, from: from, to: to, most: most, compression: o.Compression, reference: o.Reference}
	e.moved.L = &e.out
	largest := int64(0)
	for i, s := range spans {
		for at := int64(0); at < s.Bytes; at += part {
			n := min(part, s.Bytes-at)
			e.parts = append(e.parts, model.Container{Region: i, Plain: model.Span{Offset: s.Offset + at, Bytes: n}})
			largest = max(largest, n)
		}
	}
	e.lengths = make([]uint32, len(e.parts))
	goroutines := max(1, min(o.Goroutines, len(e.parts)))
	bound := int64(codec.Bound(int(largest)))
	need := []int64{outBytes + max(bound, behindBytes)}
	ofReference := int64(0)
	if o.Reference != nil {
		ofReference = largest
	}
	for range goroutines {
		need = append(need, largest, bound, ofReference)
	}
	rooms, err := o.Room.Cut(need...)
	if err != nil {
		return nil, err
	}
	e.collected = rooms[0][:0]
	together(goroutines, func(g int) { e.work(rooms[1+3*g], rooms[2+3*g], rooms[3+3*g]) })
	encoding := &model.Encoding{Part: part, Lengths: e.lengths, Sections: o.Compression != codec.NoCompression}
	if e.err == nil {
		e.err = e.end(behind, encoding)
	}
	if e.err != nil {
		return nil, e.err
	}
	return encoding, nil
}

// end adds what is behind the containers, and passes the rest on.
func (e *encoder) end(behind Behind, encoding *model.Encoding) error {
	p, err := behind(encoding)
	if err != nil {
		return err
	}
	if e.written += int64(len(p)); e.written > e.most {
		return fmt.Errorf("%w: %s with those behind the containers, where %s are the most", ErrLarge, quantity.Exact(e.written), quantity.Exact(e.most))
	}
	for len(p) > 0 {
		n := min(len(p), behindBytes)
		if err := e.collect(p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	rest := len(e.collected)
	if rest == 0 {
		return nil
	}
	last := e.collected[:wholeBlocks(int64(rest))]
	clear(last[rest:])
	return e.to(last)
}

// encoder is a call of Encode. Each goroutine takes the next part, encodes it, and waits until the containers before it have been written.
type encoder struct {
	choices []Choice
	parts   []model.Container // their places in At are not used
	from    Plain
	to      Sink
	most    int64

	compression codec.Compression
	reference   Reference

	in   sync.Mutex // guards next, and calls of from
	next int        // index of the part that is read next

	out       sync.Mutex // guards what follows, and calls of to
	moved     sync.Cond  // turn or err has changed
	turn      int        // index of the container that is written next
	collected []byte
	written   int64 // bytes of containers, and of what is behind them, those collected included
	lengths   []uint32
	err       error
}

func (e *encoder) work(plain, container, reference []byte) {
	err := errUnfinished
	defer func() { e.fail(err) }()
	for {
		i, p, failed := e.read(plain)
		if failed != nil || p == nil {
			err = failed
			return
		}
		n, failed := e.encode(i, p, container, reference)
		if failed == nil {
			failed = e.write(i, container[:n])
		}
		if failed != nil {
			err = failed
			return
		}
	}
}

// encode makes the container of a part. What is encoded of the reference passes through the room of the container.
func (e *encoder) encode(i int, p, container, reference []byte) (n int, err error) {
	var before []byte
	if e.reference != nil {
		before = reference[:len(p)]
		if err := e.reference(i, before, container); err != nil {
			return 0, err
		}
	}
	choice := e.choices[e.parts[i].Region]
	return codec.Encode(container, p, before, codec.Options{Kind: choice.Kind, Modes: choice.Modes, Goroutines: 1, Compression: e.compression})
}

// errStopped: another goroutine has failed.
var errStopped = errors.New("stopped")

// read takes the next part; no bytes when none is left. After from has failed it gives none: another goroutine may take the lock before this one has called fail.
func (e *encoder) read(room []byte) (i int, p []byte, err error) {
	e.in.Lock()
	defer e.in.Unlock()
	if i = e.next; i == len(e.parts) {
		return i, nil, nil
	}
	e.next++
	part := e.parts[i].Plain
	if p, err = e.from(part.Offset, room[:part.Bytes:part.Bytes]); err != nil {
		e.next = len(e.parts)
	}
	return i, p, err
}

// write adds a container behind those before it.
func (e *encoder) write(i int, container []byte) error {
	e.out.Lock()
	defer e.out.Unlock()
	for e.turn != i && e.err == nil {
		e.moved.Wait()
	}
	if e.err != nil {
		return errStopped
	}
	if e.written += int64(len(container)); e.written > e.most {
		return fmt.Errorf("%w: %d of %d containers have %s, where %s are the most", ErrLarge, i+1, len(e.parts), quantity.Exact(e.written), quantity.Exact(e.most))
	}
	e.lengths[i] = uint32(len(container))
	if err := e.collect(container); err != nil {
		return err
	}
	e.turn++
	e.moved.Broadcast()
	return nil
}

// collect adds bytes, and passes whole blocks on when they are many.
func (e *encoder) collect(p []byte) error {
	if e.collected = append(e.collected, p...); len(e.collected) < outBytes {
		return nil
	}
	whole := len(e.collected) / BlockBytes * BlockBytes
	if err := e.to(e.collected[:whole]); err != nil {
		return err
	}
	e.collected = e.collected[:copy(e.collected[:cap(e.collected)], e.collected[whole:])]
	return nil
}

// fail ends the call with an error; nil is none.
func (e *encoder) fail(err error) {
	if err == nil {
		return
	}
	e.out.Lock()
	defer e.out.Unlock()
	if e.err == nil {
		e.err = err
		e.moved.Broadcast()
	}
	e.in.Lock()
	defer e.in.Unlock()
	e.next = len(e.parts)
}
