package dedup

import (
	"fmt"
	"slices"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/record"
	"velocpy/gocore/reduction/tree"
)

// Region is one named region of a checkpoint. Dedup only reads Bytes, and keeps no reference to them.
type Region struct {
	Name  string
	Bytes []byte
}

// Lineage is the state of a sequence of checkpoints: the trees of the last one by region, and the record. It is for one goroutine at a time.
type Lineage struct {
	options  Options
	function *digest.Function
	record   *record.Record
	regions  map[string]*version
	located  *difference.Map // of the last checkpoint; nil before the first
	previous uint32          // number of the last checkpoint
	any      bool
}

// version is what is known of a region of the last checkpoint.
type version struct {
	tree   *tree.Tree
	blocks []digest.Digest
}

// size is the number of bytes of the region.
func (v *version) size() int {
	if v == nil {
		return 0
	}
	return int(v.tree.Size())
}

// New returns the state before the first checkpoint.
func New(o Options) (*Lineage, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	l := &Lineage{options: o, function: digest.New(o.Kind, o.Seed), regions: map[string]*version{}}
	if o.cut > 0 {
		l.function = l.function.Cut(o.cut)
	}
	if l.records() {
		l.record = record.New(o.Record)
	} else {
		l.record = record.New(0)
	}
	return l, nil
}

// records tells whether the method uses the record.
func (l *Lineage) records() bool { return l.options.Method >= difference.List }

// Tree returns the tree of a region of the last checkpoint, or nil. It has inner nodes with the method Tree only.
func (l *Lineage) Tree(region string) *tree.Tree {
	if v := l.regions[region]; v != nil {
		return v.tree
	}
	return nil
}

// Recorded returns the number of entries of the record, and the most it can have.
func (l *Lineage) Recorded() (entries, capacity int) { return l.record.Len(), l.record.Cap() }

// Forget makes the lineage use no first occurrences of checkpoints any more: a store calls it before it removes the objects that hold them. Bytes of the
// last checkpoint that lie there will be stored anew.
func (l *Lineage) Forget(checkpoints ...uint32) {
	l.record.Forget(checkpoints...)
	l.located = l.located.Without(checkpoints...)
}

// Last returns the map of the last checkpoint, with the places void that were forgotten; nil before the first. It must not be changed.
func (l *Lineage) Last() *difference.Map { return l.located }

// Known returns the checkpoints, in ascending order, whose first occurrences the next difference may refer to.
func (l *Lineage) Known() []uint32 {
	known := l.record.Checkpoints()
	if l.located != nil {
		known = append(known, l.located.Named()...)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

// Before calls compare with bytes of a region of the last checkpoint, from an offset on: with n of them, or with none if they are not at hand. It calls it once, and
// several goroutines call Before at once.
type Before func(region string, at, n int, compare func(before []byte))

// Dedup returns the difference of the next checkpoint, and its map. The caller owns both; the map must not be changed. References of the difference are the
// checkpoints whose first occurrences must be kept as long as this one. After an error the lineage is as before.
func (l *Lineage) Dedup(checkpoint uint32, regions []Region) (*difference.Difference, *difference.Map, error) {
	return l.DedupAfter(nil, checkpoint, regions)
}

// DedupAfter is Dedup where bytes of the last checkpoint may be at hand: a chunk with the digest of the same chunk there is a fixed duplicate only if its bytes are the same, too, as far as
// they are at hand. Else it is a first occurrence. before is not called any more after the chunks were hashed; nil: no bytes are at hand.
func (l *Lineage) DedupAfter(before Before, checkpoint uint32, regions []Region) (*difference.Difference, *difference.Map, error) {
	if l.any && checkpoint <= l.previous || checkpoint > difference.MaxCheckpoint {
		return nil, nil, fmt.Errorf("%w: %d after %d", ErrOrder, checkpoint, l.previous)
	}
	if err := checkRegions(regions, l.options.Chunk); err != nil {
		return nil, nil, err
	}
	w := newWork(l, checkpoint, regions)
	w.before = before
	w.scan()
	d, m, err := w.difference()
	if err == nil && len(d.References) > l.options.MaxReferences {
		w.rebase()
		d, m, err = w.difference()
	}
	if err != nil {
		return nil, nil, err
	}
	w.commit(m)
	return d, m, nil
}

func checkRegions(regions []Region, chunk int) error {
	names := make(map[string]bool, len(regions))
	total, chunks := uint64(0), 0
	for i := range regions {
		r := &regions[i]
		if names[r.Name] || len(r.Name) > difference.MaxName {
			return fmt.Errorf("%w: the name of region %d is too long, or taken", ErrRegion, i)
		}
		names[r.Name] = true
		total += uint64(len(r.Bytes))
		chunks += tree.Chunks(uint64(len(r.Bytes)), chunk)
	}
	if total > difference.MaxBytes || chunks > difference.MaxChunks {
		return fmt.Errorf("%w: too large together", ErrRegion)
	}
	return nil
}
