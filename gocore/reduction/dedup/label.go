package dedup

import (
	"bytes"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/record"
)

// label makes first occurrences and shifted duplicates of the stored leaves, in the order of positions, and gathers the former.
func (w *work) label() error {
	leaves := 0
	for i := range w.parts {
		leaves += len(w.parts[i].stored)
	}
	if w.lineage.options.Method == difference.Tree {
		leaves *= 2
	}
	w.reserve(w.stored())
	w.local = record.New(record.Memory(leaves))
	for i := range w.parts {
		p := &w.parts[i]
		w.begins = append(w.begins, w.length)
		p.firsts, p.shifts = p.firsts[:0], p.shifts[:0]
		for _, leaf := range p.stored {
			if err := w.labelLeaf(p, leaf); err != nil {
				return err
			}
		}
	}
	return nil
}

// stored returns the bytes of the leaves that are no fixed duplicates.
func (w *work) stored() int {
	total := 0
	for i := range w.parts {
		p := &w.parts[i]
		total += min(len(p.stored)*p.chunk, len(p.bytes))
	}
	return total
}

func (w *work) labelLeaf(p *part, leaf int) error {
	now, d := p.node(0, leaf), p.tree.Level(0)[leaf]
	place, ok, err := w.findLeaf(p, leaf, d, now)
	if err != nil {
		return err
	}
	if ok {
		p.shifts = append(p.shifts, shift{leaf, place})
		return nil
	}
	offset := w.length
	w.store(now)
	w.local.Insert(d, w.place(offset, len(now)))
	p.firsts = append(p.firsts, first{leaf, offset})
	return nil
}

// findLeaf is find for a leaf. The record's bytes with the digest of one that has collided are taken for other ones, unless they are compared.
func (w *work) findLeaf(p *part, leaf int, d digest.Digest, now []byte) (record.Place, bool, error) {
	if !p.collided[leaf] || w.lineage.options.Read != nil {
		return w.find(d, now)
	}
	place, ok := w.local.Find(d, uint64(len(now)))
	return place, ok && bytes.Equal(w.own(place, len(now)), now), nil
}

// find returns a place that has these bytes: the record's, else one of this checkpoint.
func (w *work) find(d digest.Digest, now []byte) (record.Place, bool, error) {
	for _, r := range [...]*record.Record{w.record, w.local} {
		place, ok := r.Find(d, uint64(len(now)))
		if !ok || place.Checkpoint < w.oldest {
			continue
		}
		if same, err := w.same(place, now); same || err != nil {
			return place, same, err
		}
	}
	return record.Place{}, false, nil
}

func (w *work) place(offset uint64, n int) record.Place {
	return record.Place{Checkpoint: w.checkpoint, Offset: offset, Bytes: uint64(n)}
}

// listLeaves makes one entry per leaf.
func (w *work) listLeaves() {
	for i := range w.parts {
		p := &w.parts[i]
		for _, f := range p.firsts {
			w.firsts = append(w.firsts, difference.Entry{Position: p.position + uint64(f.index)})
		}
		for _, s := range p.shifts {
			w.addShift(p, 0, s, 0)
		}
	}
}

// addShift adds the entry of a node.
func (w *work) addShift(p *part, level int, s shift, extent uint32) {
	w.shifted = append(w.shifted, difference.Shift{
		Entry:      difference.Entry{Position: p.position + uint64(s.index)<<level, Extent: extent},
		Checkpoint: s.place.Checkpoint, Offset: s.place.Offset,
	})
}

// gatherAll is the method Full.
func (w *work) gatherAll() {
	total := 0
	for i := range w.parts {
		total += len(w.parts[i].bytes)
	}
	w.reserve(total)
	for i := range w.parts {
		w.store(w.parts[i].bytes)
	}
}

// markBits is the method Basic.
func (w *work) markBits() {
	chunks := uint64(0)
	for i := range w.parts {
		chunks += uint64(w.parts[i].leaves)
	}
	w.changed = make([]byte, (chunks+7)/8)
	w.reserve(w.stored())
	for i := range w.parts {
		p := &w.parts[i]
		for _, leaf := range p.stored {
			position := p.position + uint64(leaf)
			w.changed[position/8] |= 1 << (position % 8)
			w.store(p.node(0, leaf))
		}
	}
}
