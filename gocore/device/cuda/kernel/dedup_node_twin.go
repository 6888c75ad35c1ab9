package kernel

import (
	"bytes"
	"encoding/binary"

	"velocpy/gocore/reduction/digest"
)

// waveTwin is the nodes of a level that are first occurrences, or those that are shifted duplicates, ascending.
type waveTwin struct {
	level           int
	from, to, count uint64
}

func (w *waveTwin) chunk(i uint64) uint64 { return uint64(*elementAt[uint32](w.from, i)) }

// nextTwin is what becomes of a node of a wave.
type nextTwin uint8

const (
	stops  nextTwin = iota // it has no parent in the next wave
	passes                 // it is the only child of its parent
	joins                  // its parent has this node and the next one of the wave
	joined                 // the node before it in the wave has joined it
)

func (t *labelTwin) next(w *waveTwin, n *nodeTwin, number uint64) nextTwin {
	position, apart := t.position(n.chunk), uint64(1)<<w.level
	switch {
	case n.top():
		return stops
	case n.index%2 != 0:
		if number > 0 && position-t.position(w.chunk(number-1)) == apart {
			return joined
		}
		return stops
	case (n.index+1)<<n.level >= n.leaves():
		return passes
	case number+1 < w.count && t.position(w.chunk(number+1))-position == apart:
		return joins
	}
	return stops
}

// join makes the digest of the parent of a node and the one beside it.
func (t *labelTwin) join(left nodeTwin) digest.Digest {
	right := left
	right.index, right.chunk = left.index+1, left.chunk+1<<left.level
	var both [2 * digest.Bytes]byte
	for i, d := range []digest.Digest{t.digest(left), t.digest(right)} {
		binary.LittleEndian.PutUint64(both[digest.Bytes*i:], d.Lo)
		binary.LittleEndian.PutUint64(both[digest.Bytes*i+8:], d.Hi)
	}
	d := hash128(both[:], t.NodeSeed)
	*elementAt[digest.Digest](t.Nodes, right.chunk) = d
	return d
}

// stop notes that an entry of a level begins with a chunk.
func (t *labelTwin) stop(level int, chunk uint64) {
	*elementAt[uint8](t.Extent, chunk) = uint8(level + 1)
}

func (t *labelTwin) joinedAt(chunk uint64) *uint8 { return elementAt[uint8](t.Joined, chunk) }

// raiseFirst tells whether a node goes on to the next wave.
func (t *labelTwin) raiseFirst(w *waveTwin, number uint64) bool {
	n := t.node(w.level, w.chunk(number))
	next := t.next(w, &n, number)
	if next == stops {
		t.stop(w.level, n.chunk)
	}
	if next == joins {
		t.join(n)
		*t.joinedAt(n.chunk + 1<<w.level) = uint8(w.level + 1)
		t.counts().JoinedNodes[w.level+1]++
	}
	return next == passes || next == joins
}

// joinedNode is the node with two children that is called by the first chunk of its right child.
func (t *labelTwin) joinedNode(right uint64) nodeTwin {
	level := int(*t.joinedAt(right))
	return t.node(level, right-1<<(level-1))
}

func (t *labelTwin) hasNodeDigest(d digest.Digest, level int) func(right uint64) bool {
	return func(right uint64) bool {
		return int(*t.joinedAt(right)) == level && *elementAt[digest.Digest](t.Nodes, right) == d
	}
}

// eachJoined visits the first occurrences with two children, by the first chunk of their right child.
func (t *labelTwin) eachJoined(visit func(right uint64, level int, slot *uint32)) {
	for right := range t.counts().Changed {
		if level := int(*t.joinedAt(right)); level > 0 {
			d := *elementAt[digest.Digest](t.Nodes, right)
			visit(right, level, t.own(t.NodeTable, d, t.hasNodeDigest(d, level)))
		}
	}
}

// putNodes puts them into the table of nodes.
func (t *labelTwin) putNodes() {
	t.eachJoined(func(right uint64, _ int, slot *uint32) { *slot = min(*slot, uint32(right)) })
}

// sourceOfParent returns the source of a node that would have two shifted duplicates as children; noSource: there is none.
func (t *labelTwin) sourceOfParent(parent nodeTwin, d digest.Digest) uint64 {
	if slot, found := t.recorded(d, parent.length()); found {
		return inRecord | slot
	}
	right := *t.own(t.NodeTable, d, t.hasNodeDigest(d, parent.level))
	if right == nobody {
		return noSource
	}
	if other := t.joinedNode(uint64(right)); bytes.Equal(other.text(), parent.text()) {
		return inCheckpoint | other.chunk
	}
	return noSource
}

// raiseShift tells whether a node goes on. Two of them go on as one if their parent is known as a whole.
func (t *labelTwin) raiseShift(w *waveTwin, number uint64) bool {
	n := t.node(w.level, w.chunk(number))
	switch t.next(w, &n, number) {
	case stops:
		t.stop(w.level, n.chunk)
	case passes:
		return true
	case joins:
		parent := n
		parent.index, parent.level = n.index/2, n.level+1
		if source := t.sourceOfParent(parent, t.join(n)); source != noSource {
			*t.source(n.chunk) = source
			return true
		}
		t.stop(w.level, n.chunk)
		t.stop(w.level, n.chunk+1<<w.level)
	}
	return false
}

// levels are the counts of the nodes of each wave.
func (t *labelTwin) levels(firsts bool) *[dedupLevels]uint64 {
	if firsts {
		return &t.counts().FirstNodes
	}
	return &t.counts().ShiftNodes
}

// wave makes the next wave.
func (t *labelTwin) wave(firsts bool, w waveTwin) {
	raise, n := (*labelTwin).raiseShift, uint64(0)
	if firsts {
		raise = (*labelTwin).raiseFirst
	}
	for i := range w.count {
		if raise(t, &w, i) {
			*elementAt[uint32](w.to, n) = uint32(w.chunk(i))
			n++
		}
	}
	t.levels(firsts)[w.level+1] = n
}

func (t *labelTwin) raise(firsts bool) error {
	w := waveTwin{int(t.Level), t.From, t.To, t.levels(firsts)[t.Level]}
	if err := t.parts(w.count, 1); err != nil {
		return err
	}
	t.wave(firsts, w)
	return nil
}

// raiseFew makes all waves from a level on.
func (t *labelTwin) raiseFew(firsts bool) error {
	w := waveTwin{int(t.Level), t.From, t.To, t.levels(firsts)[t.Level]}
	for w.count > 0 {
		t.wave(firsts, w)
		next := waveTwin{w.level + 1, w.to, w.from, t.levels(firsts)[w.level+1]}
		if w.level == int(t.Level) { // this list is not of the waves, and stays
			next.to = t.Spare
		}
		w = next
	}
	return nil
}

func (t *labelTwin) findNewChunks() {
	c := t.counts()
	room := t.Capacity - *elementAt[uint64](t.Before, 0)
	for i := range min(room, c.Firsts) {
		chunk := uint64(*elementAt[uint32](t.Firsts, i))
		if *t.flag(chunk)&isCollided == 0 && !t.record().has(t.digest(t.node(0, chunk))) {
			*t.flag(chunk) |= isNewChunk
			c.RecordedNodes[0]++
		}
	}
}

func (t *labelTwin) findNewNodes() {
	t.eachJoined(func(right uint64, level int, slot *uint32) {
		if uint64(*slot) == right && !t.record().has(*elementAt[digest.Digest](t.Nodes, right)) {
			*t.flag(right) |= isNewNode
			t.counts().RecordedNodes[level]++
		}
	})
}

// addNew adds the new digests of the levels that the record has room for.
func (t *labelTwin) addNew() {
	c := t.counts()
	entries, end := *elementAt[uint64](t.Before, 0)+c.RecordedNodes[0], 1
	for ; end < dedupLevels && entries+c.JoinedNodes[end] <= t.Capacity; end++ {
		entries += c.RecordedNodes[end]
	}
	for chunk := range c.Changed {
		flags := *t.flag(chunk)
		if flags&isNewChunk != 0 {
			n := t.node(0, chunk)
			t.recordNode(&n, t.digest(n))
		}
		if flags&isNewNode != 0 && int(*t.joinedAt(chunk)) < end {
			n := t.joinedNode(chunk)
			t.recordNode(&n, *elementAt[digest.Digest](t.Nodes, chunk))
		}
	}
	c.Recorded = entries
}

func (t *labelTwin) recordNode(n *nodeTwin, d digest.Digest) {
	length := n.length()
	t.record().add(slotTwin{d, *t.source(n.chunk) | length<<48, length>>16<<32 | uint64(t.Checkpoint)})
}
