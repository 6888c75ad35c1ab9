package dedup

import (
	"bytes"
	"fmt"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

// choose finds the leaves of a part that are no fixed duplicates.
func (w *work) choose(p *part) error {
	p.stored = p.stored[:0]
	if p.located == nil {
		for i := range p.leaves {
			p.stored = append(p.stored, i)
		}
		return nil
	}
	next := 0
	for _, c := range p.changes {
		if err := w.verifyFixed(p, next, c.Leaf); err != nil {
			return err
		}
		p.stored = append(p.stored, c.Leaf)
		next = c.Leaf + 1
	}
	return w.verifyFixed(p, next, p.leaves)
}

// verifyFixed adds those of the unchanged leaves from one up to another to the stored ones whose bytes are gone, or differ in exact mode.
func (w *work) verifyFixed(p *part, from, to int) error {
	if from >= to {
		return nil
	}
	var err error
	end := uint64(min(to*p.chunk, len(p.bytes)))
	p.located.Each(uint64(from*p.chunk), end, func(r difference.Run, n uint64) bool {
		if r.Checkpoint == difference.Void {
			for at := int(r.At) / p.chunk; at*p.chunk < int(r.At+n); at++ {
				p.stored = append(p.stored, at)
			}
			return true
		}
		if w.lineage.options.Read != nil {
			err = w.verifyRun(p, r, n)
		}
		return err == nil
	})
	return err
}

// verifyRun compares a run of unchanged leaves with its source.
func (w *work) verifyRun(p *part, r difference.Run, n uint64) error {
	step, ahead := uint64(blockBytes), uint64(1) // a multiple of every chunk length
	if r.Period > 0 {
		step, ahead = uint64(r.Period), 0
	}
	for at := r.At; at < r.At+n; at += step {
		now := p.bytes[at:min(at+step, r.At+n)]
		then, err := w.read(r.Checkpoint, r.Offset+ahead*(at-r.At), len(now))
		if err != nil {
			return err
		}
		for from := 0; from < len(now); from += p.chunk {
			to := min(from+p.chunk, len(now))
			if !bytes.Equal(now[from:to], then[from:to]) {
				p.stored = append(p.stored, (int(at)+from)/p.chunk)
			}
		}
	}
	return nil
}

// read returns the bytes of a source in an earlier checkpoint, until the next call.
func (w *work) read(checkpoint uint32, offset uint64, n int) ([]byte, error) {
	if len(w.buffer) < n {
		w.buffer = make([]byte, max(n, blockBytes))
	}
	if err := w.lineage.options.Read(checkpoint, offset, w.buffer[:n]); err != nil {
		return nil, fmt.Errorf("%w: checkpoint %d, offset %d: %w", ErrVerify, checkpoint, offset, err)
	}
	return w.buffer[:n], nil
}

// same tells whether a place holds these bytes. Bytes of this checkpoint are compared always, others in exact mode.
func (w *work) same(place record.Place, now []byte) (bool, error) {
	if place.Checkpoint == w.checkpoint {
		return bytes.Equal(w.own(place, len(now)), now), nil
	}
	if w.lineage.options.Read == nil {
		return true, nil
	}
	for at := 0; at < len(now); at += blockBytes {
		part := now[at:min(at+blockBytes, len(now))]
		then, err := w.read(place.Checkpoint, place.Offset+uint64(at), len(part))
		if err != nil || !bytes.Equal(part, then) {
			return false, err
		}
	}
	return true, nil
}
