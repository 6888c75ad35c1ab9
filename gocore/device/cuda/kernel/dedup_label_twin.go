package kernel

import (
	"bytes"
	"fmt"
	"sort"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/digest"
)

// labelTwin is one launch of a kernel that labels changed chunks.
type labelTwin struct {
	*dedupLabels
	blocks int
}

// labelWorks are the twins of these kernels, by their names behind the prefix.
var labelWorks = map[string]func(*labelTwin) error{
	"positions":                (*labelTwin).positions,
	"find":                     onGrid((*labelTwin).find),
	"label":                    onGrid((*labelTwin).label),
	"place":                    (*labelTwin).place,
	"gather_firsts":            onGrid((*labelTwin).gatherFirsts),
	"raise_" + dedupFirsts:     func(t *labelTwin) error { return t.raise(true) },
	"raise_" + dedupShifts:     func(t *labelTwin) error { return t.raise(false) },
	"raise_few_" + dedupFirsts: func(t *labelTwin) error { return t.raiseFew(true) },
	"raise_few_" + dedupShifts: func(t *labelTwin) error { return t.raiseFew(false) },
	"put_nodes":                onGrid((*labelTwin).putNodes),
	"list_firsts":              (*labelTwin).listFirsts,
	"list_shifts":              (*labelTwin).listShifts,
	"find_new_chunks":          onGrid((*labelTwin).findNewChunks),
	"find_new_nodes":           onGrid((*labelTwin).findNewNodes),
	"add_new":                  onGrid((*labelTwin).addNew),
}

// Flags of a chunk, and what its source is.
const (
	isFirst, isCollided, isNewChunk, isNewNode = 1, 2, 4, 8

	inRecord, inCheckpoint, noSource = uint64(1) << 63, uint64(1) << 62, ^uint64(0)
	sourceMask                       = inCheckpoint - 1
	nobody                           = ^uint32(0)
)

// cutEnd is the struct CutEnd.
type cutEnd struct{ Changed, Firsts, Bytes uint64 }

func (t *labelTwin) counts() *dedupCounted       { return elementAt[dedupCounted](t.Counts, 0) }
func (t *labelTwin) begin() *cutEnd              { return elementAt[cutEnd](t.Ends, uint64(t.Cut)) }
func (t *labelTwin) end() *cutEnd                { return elementAt[cutEnd](t.Ends, uint64(t.Cut)+1) }
func (t *labelTwin) source(chunk uint64) *uint64 { return elementAt[uint64](t.Sources, chunk) }
func (t *labelTwin) flag(chunk uint64) *uint8    { return elementAt[uint8](t.Flags, chunk) }
func (t *labelTwin) record() recordTwin          { return recordTwin{t.Record, t.Slots} }

// onGrid checks the blocks of a launch that goes on with other elements.
func onGrid(work func(*labelTwin)) func(*labelTwin) error {
	return func(t *labelTwin) error {
		if t.blocks != int(t.Blocks) {
			return fmt.Errorf("%d blocks for %d: %w", t.blocks, t.Blocks, ErrLaunch)
		}
		work(t)
		return nil
	}
}

// parts checks the blocks of a launch that reads parts of so many elements, and its state.
func (t *labelTwin) parts(elements uint64, words int) error {
	if uint64(t.blocks)*device.DedupPart < elements {
		return fmt.Errorf("%d blocks for %d elements: %w", t.blocks, elements, ErrLaunch)
	}
	return publish(t.State, words*t.blocks)
}

// nodeTwin is a node of a region: chunks from index << level on.
type nodeTwin struct {
	region       dedupRegion
	index, chunk uint64 // chunk: its first one, by its number in the list of changed chunks
	level        int
	shift        uint32
}

func (n *nodeTwin) leaves() uint64 { return (n.region.Bytes-1)>>n.shift + 1 }
func (n *nodeTwin) top() bool      { return n.leaves() <= 1<<n.level }
func (n *nodeTwin) begin() uint64  { return n.index << n.level << n.shift }
func (n *nodeTwin) length() uint64 { return min(uint64(1)<<n.level<<n.shift, n.region.Bytes-n.begin()) }
func (n *nodeTwin) text() []byte   { return text(n.region.From+n.begin(), int64(n.length())) }

func (t *labelTwin) position(chunk uint64) uint64 { return uint64(*elementAt[uint32](t.List, chunk)) }

func (t *labelTwin) node(level int, chunk uint64) nodeTwin {
	table, position := arrayAt[dedupRegion](t.Table, uint64(t.Regions)), t.position(chunk)
	region := table[sort.Search(len(table), func(i int) bool { return table[i].Position > position })-1]
	return nodeTwin{region: region, index: (position - region.Position) >> level, chunk: chunk, level: level, shift: t.Shift}
}

// digest is the digest of a node all of whose chunks have changed. One with a single child has that of the child.
func (t *labelTwin) digest(n nodeTwin) digest.Digest {
	index := n.index
	for level := n.level; level > 0; level-- {
		if half := uint64(1) << (level - 1); (2*index+1)*half < n.leaves() {
			return *elementAt[digest.Digest](t.Nodes, n.chunk+half)
		}
		index *= 2
	}
	return *elementAt[digest.Digest](n.region.Leaves, index)
}

// recorded returns the slot of the record that has a digest and a length and is not too old.
func (t *labelTwin) recorded(d digest.Digest, length uint64) (slot uint64, found bool) {
	if t.Slots == 0 {
		return 0, false
	}
	slot, found = t.record().search(d)
	s := t.record().slot(slot)
	return slot, found && s.bytes() == length && s.checkpoint() >= t.Oldest
}

// own finds the place of a digest in a table of this checkpoint, or the one that is free.
func (t *labelTwin) own(table uint64, d digest.Digest, same func(element uint64) bool) *uint32 {
	for at := uint32(d.Lo) & t.Mask; ; at = (at + 1) & t.Mask {
		if slot := elementAt[uint32](table, uint64(at)); *slot == nobody || same(uint64(*slot)) {
			return slot
		}
	}
}

func (t *labelTwin) hasDigest(d digest.Digest) func(chunk uint64) bool {
	return func(chunk uint64) bool { return t.digest(t.node(0, chunk)) == d }
}

// positions lists those of changed chunks.
func (t *labelTwin) positions() error {
	if err := t.parts(t.Words, 1); err != nil {
		return err
	}
	n := t.begin().Changed
	for i, word := range arrayAt[uint32](t.Changed+4*t.FirstWord, t.Words) {
		for bit := range 32 {
			if word>>bit&1 != 0 {
				*elementAt[uint32](t.List, n) = uint32(t.FirstWord+uint64(i))*32 + uint32(bit)
				n++
			}
		}
	}
	t.counts().Changed, t.end().Changed = n, n
	return nil
}

// find finds the chunks that the record has, and puts the others into the table of chunks.
func (t *labelTwin) find() {
	for chunk := t.begin().Changed; chunk < t.end().Changed; chunk++ {
		n := t.node(0, chunk)
		d := t.digest(n)
		if slot, found := t.recorded(d, n.length()); found {
			*t.source(chunk) = inRecord | slot
			continue
		}
		*t.source(chunk) = noSource
		if slot := t.own(t.ChunkTable, d, t.hasDigest(d)); uint32(chunk) < *slot {
			*slot = uint32(chunk)
		}
	}
}

// label makes first occurrences, and shifted duplicates of lower chunks with the same bytes.
func (t *labelTwin) label() {
	for chunk := t.begin().Changed; chunk < t.end().Changed; chunk++ {
		flags := uint8(0)
		if *t.source(chunk) == noSource {
			n := t.node(0, chunk)
			d := t.digest(n)
			lowest := t.node(0, uint64(*t.own(t.ChunkTable, d, t.hasDigest(d))))
			switch {
			case lowest.chunk == chunk:
				flags = isFirst
			case bytes.Equal(lowest.text(), n.text()):
				*t.source(chunk) = inCheckpoint | lowest.chunk
			default:
				flags = isFirst | isCollided
			}
		}
		*t.flag(chunk), *elementAt[uint8](t.Extent, chunk), *elementAt[uint8](t.Joined, chunk) = flags, 1-uint8(t.Tree), 0
	}
}

// place gives first occurrences their offsets, and lists them and the others.
func (t *labelTwin) place() error {
	now, changed := *t.begin(), t.end().Changed
	if err := t.parts(changed-now.Changed, 2); err != nil {
		return err
	}
	for chunk := now.Changed; chunk < changed; chunk++ {
		if *t.flag(chunk)&isFirst == 0 {
			*elementAt[uint32](t.Shifts, chunk-now.Firsts) = uint32(chunk)
			continue
		}
		*t.source(chunk) = now.Bytes
		*elementAt[uint32](t.Firsts, now.Firsts) = uint32(chunk)
		n := t.node(0, chunk)
		now.Firsts, now.Bytes = now.Firsts+1, now.Bytes+n.length()
	}
	now.Changed = changed
	*t.end() = now
	c := t.counts()
	c.Firsts, c.FirstNodes[0], c.Bytes, c.ShiftNodes[0] = now.Firsts, now.Firsts, now.Bytes, changed-now.Firsts
	return nil
}

func (t *labelTwin) gatherFirsts() {
	for i := t.begin().Firsts; i < t.end().Firsts; i++ {
		n := t.node(0, uint64(*elementAt[uint32](t.Firsts, i)))
		copy(text(t.Data+*t.source(n.chunk), int64(n.length())), n.text())
	}
}

// entries lists the chunks with which an entry begins, of first occurrences or of the others.
func (t *labelTwin) entries(flag uint8, add func(number, chunk, entry uint64)) (n uint64, err error) {
	if err := t.parts(t.counts().Changed, 1); err != nil {
		return 0, err
	}
	for chunk := range t.counts().Changed {
		extent := *elementAt[uint8](t.Extent, chunk)
		if extent != 0 && *t.flag(chunk)&isFirst == flag {
			add(n, chunk, t.position(chunk)<<24|uint64(extent-1))
			n++
		}
	}
	return n, nil
}

func (t *labelTwin) listFirsts() (err error) {
	t.counts().FirstEntries, err = t.entries(isFirst, func(number, _, entry uint64) { *elementAt[uint64](t.FirstEntries, number) = entry })
	return err
}

func (t *labelTwin) listShifts() (err error) {
	t.counts().ShiftEntries, err = t.entries(0, func(number, chunk, entry uint64) {
		source, checkpoint, offset := *t.source(chunk), uint64(t.Checkpoint), uint64(0)
		if source&inRecord != 0 {
			s := t.record().slot(source & sourceMask)
			checkpoint, offset = uint64(s.checkpoint()), s.offset()
		} else {
			offset = *t.source(source & sourceMask)
		}
		*elementAt[[device.ShiftBytes / 8]uint64](t.ShiftEntries, number) = [...]uint64{entry, checkpoint, offset}
	})
	return err
}
