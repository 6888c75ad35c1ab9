package dedup

import (
	"bytes"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/record"
	"velocpy/gocore/reduction/tree"
)

// work is one call of Dedup. It changes nothing of the lineage before commit.
type work struct {
	lineage    *Lineage
	checkpoint uint32
	parts      []part
	base       *difference.Map // of the checkpoint before; nil if this one refers to none
	record     *record.Record
	before     Before
	oldest     uint32 // the first checkpoint whose places in the record may be used (Options.MaxAge)

	data    []byte         // first occurrences, unless Options.Apart leaves them out
	length  uint64         // bytes of the first occurrences
	begins  []uint64       // where the first occurrences of each part begin, of those that were labelled
	local   *record.Record // digests of this checkpoint's first occurrences
	joined  [][]joined     // nodes with two children that are first occurrences, from level 1 on
	firsts  []difference.Entry
	shifted []difference.Shift
	changed []byte // Basic
	buffer  []byte
}

// part is a region of the checkpoint.
type part struct {
	name     string
	bytes    []byte // nil while a lineage is resumed
	size     int
	chunk    int
	leaves   int
	position uint64 // of the first chunk
	old      *version
	located  *difference.Located // in the checkpoint before

	checksum uint64
	blocks   []digest.Digest
	tree     *tree.Tree
	changes  []tree.Change // leaves whose digest is new, and those of collided
	collided map[int]bool  // leaves whose digest is that of other bytes in the checkpoint before; nil: there are none
	stored   []int         // leaves that are no fixed duplicates, ascending
	firsts   []first
	shifts   []shift
}

// first is a node that is a first occurrence.
type first struct {
	index  int
	offset uint64
}

// joined is a first occurrence with two children.
type joined struct {
	part *part
	first
}

// shift is a node that is a shifted duplicate.
type shift struct {
	index int
	place record.Place
}

func newWork(l *Lineage, checkpoint uint32, regions []Region) *work {
	w := &work{lineage: l, checkpoint: checkpoint, parts: make([]part, len(regions)), base: l.located, record: l.record}
	if age := l.options.MaxAge; age > 0 && checkpoint > age {
		w.oldest = checkpoint - age
	}
	position := uint64(0)
	for i, r := range regions {
		p := &w.parts[i]
		*p = part{name: r.Name, bytes: r.Bytes, size: len(r.Bytes), chunk: l.options.Chunk, position: position, old: l.regions[r.Name], located: l.located.Find(r.Name)}
		p.leaves = tree.Chunks(uint64(p.size), p.chunk)
		position += uint64(p.leaves)
	}
	return w
}

// node returns the bytes of a node.
func (p *part) node(level, index int) []byte {
	from := index << level * p.chunk
	return p.bytes[from:min(from+p.chunk<<level, len(p.bytes))]
}

// rebase makes the checkpoint one that refers to no other.
func (w *work) rebase() {
	w.base, w.record = nil, record.New(0)
	for i := range w.parts {
		w.parts[i].located = nil
	}
}

// difference makes the difference and its map from the parts that were scanned.
func (w *work) difference() (*difference.Difference, *difference.Map, error) {
	l := w.lineage
	w.data, w.length, w.joined, w.firsts, w.shifted, w.changed = nil, 0, nil, nil, nil, nil
	d := &difference.Difference{
		Checkpoint: w.checkpoint, Method: l.options.Method, Kind: l.options.Kind, Chunk: l.options.Chunk, Seed: l.options.Seed,
		Regions: make([]difference.Region, len(w.parts)),
	}
	fixed := false
	for i := range w.parts {
		p := &w.parts[i]
		d.Regions[i] = difference.Region{Name: p.name, Size: uint64(len(p.bytes)), Checksum: p.checksum}
		if l.options.Method == difference.Full {
			continue
		}
		if err := w.choose(p); err != nil {
			return nil, nil, err
		}
		fixed = fixed || len(p.stored) < p.leaves
	}
	if fixed {
		d.HasBase, d.Base = true, l.previous
	}
	if err := w.describe(); err != nil {
		return nil, nil, err
	}
	if len(w.data) < cap(w.data)/2 {
		w.data = bytes.Clone(w.data) // most of the memory is unused
	}
	d.Data, d.First, d.Shifted, d.Changed = w.data, w.firsts, w.shifted, w.changed
	if l.options.Apart {
		d.LeaveOut(w.length)
	}
	m, err := d.Locate(w.base)
	if err != nil {
		return nil, nil, err
	}
	d.References = m.References()
	return d, m, nil
}

// describe makes the metadata of the method and gathers the first occurrences.
func (w *work) describe() error {
	switch w.lineage.options.Method {
	case difference.Full:
		w.gatherAll()
		return nil
	case difference.Basic:
		w.markBits()
		return nil
	}
	if err := w.label(); err != nil {
		return err
	}
	switch w.lineage.options.Method {
	case difference.List:
		w.listLeaves()
	case difference.Runs:
		w.joinRuns()
	case difference.Tree:
		return w.consolidate()
	}
	return nil
}

// commit makes the checkpoint the lineage's last.
func (w *work) commit(m *difference.Map) {
	l := w.lineage
	if w.record != l.record { // a base
		l.record.Clear()
	}
	if l.records() {
		l.record.Expire(w.oldest)
		w.recordFirsts()
	}
	l.regions = make(map[string]*version, len(w.parts))
	for i := range w.parts {
		p := &w.parts[i]
		l.regions[p.name] = &version{tree: p.tree, blocks: p.blocks}
	}
	l.located, l.previous, l.any = m, w.checkpoint, true
}
