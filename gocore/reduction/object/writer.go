package object

import (
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
)

// Writer is the state of a lineage: what is known of the last checkpoint, and the digests of earlier ones. It is for one goroutine at a time.
type Writer struct {
	options Options
	lineage *dedup.Lineage
	next    uint32
	// bases are the objects whose metadata locate the bytes of the last checkpoint: its own, and the bases of the difference in it.
	bases  []uint32
	broken bool             // one of the bases is gone
	stored map[uint32]int64 // bytes of the first occurrences in each object that may be a source
	anchor anchor
}

// NewWriter returns the state before the first checkpoint.
func NewWriter(o Options) (*Writer, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	l, err := dedup.New(o.dedup())
	if err != nil {
		return nil, err
	}
	return &Writer{options: o, lineage: l, next: o.First, stored: map[uint32]int64{}}, nil
}

// Memory bounds what is kept for the next checkpoint of regions of these sizes: trees, and the record of digests. A Draft needs twice the memory of the trees.
func (w *Writer) Memory(sizes []uint64) int64 { return w.options.dedup().Memory(sizes) }

// Known returns the numbers of the objects that the next draft may have as sources, in ascending order. A draft makes them fewer, if they were many.
func (w *Writer) Known() []uint32 {
	known := w.lineage.Known()
	if !w.broken {
		known = append(known, w.bases...)
	}
	if w.anchor.use {
		known = append(known, w.anchor.number)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

// Forget makes nothing later refer to objects: they are gone, or were never written. The caller calls it before it removes an object that Known returns.
func (w *Writer) Forget(numbers ...uint32) {
	if len(numbers) == 0 {
		return
	}
	w.lineage.Forget(numbers...)
	for _, n := range numbers {
		delete(w.stored, n)
		w.anchor.use = w.anchor.use && n != w.anchor.number
	}
	w.broken = w.broken || slices.ContainsFunc(numbers, func(n uint32) bool { return slices.Contains(w.bases, n) })
}

// Draft is a checkpoint that was de-duplicated, before its object is written. It does not depend on its Writer any more.
type Draft struct {
	number    uint32
	lineage   uint64
	sources   []uint32
	refers    bool
	reference uint32 // the source with whose containers those of this one are encoded
	body      body
	firsts    []model.Span // first occurrences of each region, behind one another
	stretches []stretch    // where they lie in the regions
	regions   []dedup.Region
}

// stretch is a part of a region whose bytes are first occurrences.
type stretch struct {
	region int
	at     int64 // in the region
	to     int64 // in the first occurrences
	bytes  int64
}

// Draft de-duplicates a checkpoint and gives it the next number. It is the lineage's last checkpoint from now on. The regions must not change before Write has
// returned, or the draft is dropped. After an error the last checkpoint is the one before.
func (w *Writer) Draft(regions []dedup.Region) (*Draft, error) { return w.DraftAfter(nil, regions) }

// DraftAfter is Draft where bytes of the lineage's last checkpoint may be at hand: fixed duplicates are compared with these, as far as they are. nil: they are not.
func (w *Writer) DraftAfter(before dedup.Before, regions []dedup.Region) (*Draft, error) {
	w.thin()
	found, m, err := w.lineage.DedupAfter(before, w.next, regions)
	if err != nil {
		return nil, err
	}
	d := &Draft{number: w.next, lineage: w.options.Lineage, regions: slices.Clone(regions)}
	chain, err := w.describe(d, found, m)
	if err == nil {
		err = d.gather(found)
	}
	if err != nil {
		w.Forget(w.next) // package dedup has it
		w.bases, w.broken, w.next = nil, true, w.next+1
		return nil, err
	}
	w.bases, w.broken, w.next = append([]uint32{d.number}, chain...), false, w.next+1
	w.remember(d)
	w.refer(d)
	return d, nil
}

// describe makes the body of the metadata in the form that is shorter when it is stored, and finds the sources. It returns the bases of the form.
func (w *Writer) describe(d *Draft, found *difference.Difference, m *difference.Map) (chain []uint32, err error) {
	d.sources = found.References
	var failed error
	d.body, failed = newBody(d.number, formMap, appendMap(nil, m, w.options.Chunk))
	if found.HasBase {
		if chain = w.bases; w.broken || len(chain) > w.options.MaxChain {
			return nil, failed
		}
	}
	sources := slices.Concat(d.sources, chain)
	slices.Sort(sources)
	if sources = slices.Compact(sources); len(sources) > w.options.MaxSources {
		return nil, failed
	}
	plain, err := found.AppendMetadata(nil)
	if err != nil {
		return nil, err
	}
	other, err := newBody(d.number, formDifference, plain)
	if failed == nil && (err != nil || uint64(len(other.stored)) >= uint64(len(d.body.stored))+w.options.handicap) {
		return nil, nil
	}
	d.body, d.sources = other, sources
	return chain, err
}

// gather finds the first occurrences in the regions.
func (d *Draft) gather(found *difference.Difference) error {
	d.firsts = make([]model.Span, len(d.regions))
	total := int64(0)
	err := found.Firsts(func(region int, at, bytes uint64) {
		n := len(d.stretches) - 1
		if n >= 0 && d.stretches[n].region == region && d.stretches[n].at+d.stretches[n].bytes == int64(at) {
			d.stretches[n].bytes += int64(bytes)
		} else {
			d.stretches = append(d.stretches, stretch{region: region, at: int64(at), to: total, bytes: int64(bytes)})
		}
		d.firsts[region].Bytes += int64(bytes)
		total += int64(bytes)
	})
	at := int64(0)
	for i := range d.firsts {
		d.firsts[i].Offset = at
		at += d.firsts[i].Bytes
	}
	return err
}

// Number is the number of the checkpoint.
func (d *Draft) Number() uint32 { return d.number }

// Sources are the numbers of the earlier objects that a reader needs, in ascending order. They must be kept as long as this one.
func (d *Draft) Sources() []uint32 { return slices.Clone(d.sources) }

// Stored is the number of bytes that no earlier object has.
func (d *Draft) Stored() int64 {
	if len(d.firsts) == 0 {
		return 0
	}
	return d.firsts[len(d.firsts)-1].End()
}

// Metadata bounds the bytes of the metadata, whatever the lengths of the containers are.
func (d *Draft) Metadata() int64 {
	return metadataBound(d.firsts, model.PartGrain, int64(len(d.body.stored)))
}
