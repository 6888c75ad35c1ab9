package lineage

import (
	"encoding/binary"
	"fmt"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
)

// Checkpoint is one that a device de-duplicates. Its methods are called once an event behind the Dedup has passed.
type Checkpoint struct {
	lineage  *Lineage
	c        *device.Deduplication
	names    []string
	versions map[string]version
	digests  span
	found    device.Found
	counts   *device.DedupCounts // once they were taken
}

// Counts are what the device has found.
func (k *Checkpoint) Counts() device.DedupCounts {
	if k.counts == nil {
		n := k.found.Take()
		k.counts = &n
	}
	return *k.counts
}

// Gather queues the copy of the first occurrences to the result, if they were left out. Neither Finish nor Drop need have been called; the scratch memory is in use until an event
// behind the call has passed.
func (k *Checkpoint) Gather(lane device.Lane) error { return lane.GatherFirsts(k.c) }

// IsApart tells whether they were left out.
func (k *Checkpoint) IsApart() bool { return k.c.Apart }

// Bytes is how many bytes the regions have together, and the first occurrences.
func (k *Checkpoint) Bytes() (all, firsts int64) {
	for i := range k.c.Regions {
		all += k.c.Regions[i].Bytes
	}
	return all, k.Counts().Bytes
}

// Metadata is where the metadata lies in the result: the first occurrences are before it, from the beginning on.
func (k *Checkpoint) Metadata() (at, bytes int64) {
	n := k.Counts()
	return device.Metadata(n.Bytes), k.c.MetadataBytes(n)
}

// ResultBytes is the length of the first occurrences and the metadata together.
func (k *Checkpoint) ResultBytes() int64 { return k.c.ResultBytes(k.Counts()) }

// Drop gives the checkpoint up, for instance because its bytes did not get to the host. The lineage has Changed.
func (k *Checkpoint) Drop() {
	if k.lineage.running != k {
		return
	}
	if k.counts == nil {
		k.found.Discard()
	}
	k.end(true)
}

// end makes room for the next checkpoint.
func (k *Checkpoint) end(changed bool) { k.lineage.running, k.lineage.changed = nil, changed }

// Finish makes the difference of the checkpoint and its map, and makes the checkpoint the lineage's last. metadata is that of the result, in host memory. firsts are the first
// occurrences, which the difference then has; nil leaves them out (difference.Difference.LeaveOut). The caller owns both results; the map must not be
// changed. After ErrMetadata the checkpoint can be finished again; after any other error the lineage has Changed.
func (k *Checkpoint) Finish(metadata, firsts []byte) (*difference.Difference, *difference.Map, error) {
	l := k.lineage
	if l.running != k {
		return nil, nil, fmt.Errorf("%w: checkpoint %d was finished or dropped", ErrMetadata, k.c.Number)
	}
	n := k.Counts()
	if want := k.c.MetadataBytes(n); int64(len(metadata)) != want || firsts != nil && int64(len(firsts)) != n.Bytes {
		return nil, nil, fmt.Errorf("%w: %d B of %d, and %d B of first occurrences of %d", ErrMetadata, len(metadata), want, len(firsts), n.Bytes)
	}
	d := k.difference(n, metadata)
	if d.Data = firsts; firsts == nil {
		d.LeaveOut(uint64(n.Bytes))
	}
	m, err := d.Locate(l.located)
	if err == nil {
		if d.References = m.References(); len(d.References) > l.options.MaxReferences {
			err = fmt.Errorf("checkpoint %d: %w: %d", d.Checkpoint, ErrReferences, len(d.References))
		}
	}
	if err != nil {
		k.end(true)
		return nil, nil, err
	}
	k.commit(n, m)
	return d, m, nil
}

// difference makes the difference without its references and its first occurrences.
func (k *Checkpoint) difference(n device.DedupCounts, metadata []byte) *difference.Difference {
	l := k.lineage
	d := &difference.Difference{
		Checkpoint: k.c.Number, Method: k.c.Method, Kind: digest.XXH3, Chunk: k.c.Chunk, Seed: k.c.Seed, Regions: make([]difference.Region, len(k.names)),
	}
	if chunks := k.c.Chunks(); n.Changed < chunks { // there are fixed duplicates
		d.HasBase, d.Base = true, l.previous
	}
	words := reader{metadata}
	for i, name := range k.names {
		r := &k.c.Regions[i]
		sums := make([]uint64, (r.Bytes+digest.SumBytes-1)/digest.SumBytes)
		for j := range sums {
			sums[j] = words.next()
		}
		d.Regions[i] = difference.Region{Name: name, Size: uint64(r.Bytes), Checksum: l.function.Combine(sums)}
	}
	if k.c.Method == difference.Basic {
		chunks := k.c.Chunks()
		d.Changed = append(make([]byte, 0, (chunks+7)/8), words.left[:(chunks+7)/8]...)
		return d
	}
	d.First, d.Shifted = make([]difference.Entry, n.First), make([]difference.Shift, n.Shifted)
	for i := range d.First {
		d.First[i] = words.entry()
	}
	for i := range d.Shifted {
		d.Shifted[i] = difference.Shift{Entry: words.entry(), Checkpoint: uint32(words.next()), Offset: words.next()}
	}
	return d
}

// reader reads words of 64 bits.
type reader struct{ left []byte }

func (r *reader) next() uint64 {
	word := binary.LittleEndian.Uint64(r.left)
	r.left = r.left[8:]
	return word
}

func (r *reader) entry() difference.Entry {
	word := r.next()
	return difference.Entry{Position: word >> 24, Extent: uint32(word & (1<<24 - 1))}
}

// commit makes the checkpoint the lineage's last.
func (k *Checkpoint) commit(n device.DedupCounts, m *difference.Map) {
	l := k.lineage
	for held := range l.held {
		if held < k.c.Oldest || l.gone[held] {
			delete(l.held, held)
		}
	}
	clear(l.gone)
	if k.c.Entries > 0 && n.Bytes > 0 {
		l.held[k.c.Number] = true
	}
	l.regions, l.digests, l.located, l.recorded = k.versions, k.digests, m, n.Recorded
	l.previous, l.any, l.fresh = k.c.Number, true, false
	k.end(false)
}
