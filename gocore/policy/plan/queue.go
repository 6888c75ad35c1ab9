package plan

import (
	"sort"

	"velocpy/gocore/model"
)

const (
	chunkBits = 8
	chunkSize = 1 << chunkBits // 256 restores: 4 KiB, the unit in which a queue allocates and frees memory
	chunkMask = chunkSize - 1

	// mostSteps bounds the steps of one Advance, and farthest the sum of all of them, so that no distance overflows.
	mostSteps = 1 << 24
	farthest  = 1 << 60
)

// queue is a sequence of expected restores with the drops between them. It finds the first restore of any key. Restores have consecutive numbers;
// restores out of turn leave holes. A hole is a restore that overtook the head, and the head is withdrawn once it has been overtaken more than
// patience times. So there are at most patience+1 holes, kept in a short sorted list, and the withdrawn restores are always a run that begins at the
// head. Every answer is exact and O(log patience).
//
// Memory per queued restore of a number: 16 bytes, and 11 to 21 in the index. Texts cost 16 more, a use of Advance 8.
type queue struct {
	chunks   []chunk // chunks[0] holds the head
	first    int64   // number of chunks[0]'s first restore
	head     int64   // number of the first restore that has not happened
	tail     int64   // number of the next restore appended
	holes    []int64 // restores between head and tail that happened out of turn, ascending
	drops    dropList
	index    table // key -> number (low 32 bits) of its last queued restore, which links to the first: a ring of occurrences
	steps    int64 // sum of all Advance steps appended
	now      int64 // on the axis of intervals: directly behind the last restore before the head
	patience int
	spare    *[chunkSize]item // the chunk emptied last, reused for the next
}

type chunk struct {
	items   *[chunkSize]item
	texts   *[chunkSize]string // nil while the chunk holds numbers only
	steps   *[chunkSize]int64  // sum of Advance steps before each restore; nil while all equal base
	base    int64
	started bool
}

// item is one queued restore.
type item struct {
	number int64
	link   int64 // number of the key's next restore (of the last one: its first), and two flags
}

const (
	linkLast  = 1 << 0 // the final restore
	linkText  = 1 << 1 // the key is a text
	linkFlags = 2
)

func (q *queue) size() int { return int(q.tail-q.head) - len(q.holes) }

func (q *queue) at(seq int64) (*chunk, int) {
	off := seq - q.first
	return &q.chunks[off>>chunkBits], int(off & chunkMask)
}

func (q *queue) key(seq int64) model.Key {
	c, i := q.at(seq)
	if c.items[i].link&linkText != 0 {
		return model.Key{Text: c.texts[i], IsText: true}
	}
	return model.Key{Number: c.items[i].number}
}

// keyAt serves the index, which has only the low 32 bits of a number. Queued numbers span less than 2^31.
func (q *queue) keyAt(ref uint32) model.Key { return q.key(q.widen(ref)) }

func (q *queue) widen(ref uint32) int64 { return q.head + int64(int32(ref-uint32(q.head))) }

func (q *queue) next(seq int64) int64 {
	c, i := q.at(seq)
	return c.items[i].link >> linkFlags
}

func (q *queue) setNext(seq, next int64) {
	c, i := q.at(seq)
	c.items[i].link = next<<linkFlags | c.items[i].link&(linkLast|linkText)
}

func (q *queue) isLast(seq int64) bool {
	c, i := q.at(seq)
	return c.items[i].link&linkLast != 0
}

// place is the position of a restore on the axis of intervals: one per restore, plus the Advance steps between.
func (q *queue) place(seq int64) int64 {
	c, i := q.at(seq)
	if c.steps != nil {
		return seq + c.steps[i]
	}
	return seq + c.base
}

// push appends a restore of k. Amortised O(1).
func (q *queue) push(k model.Key, last bool) {
	seq := q.tail
	if seq-q.first == int64(len(q.chunks))<<chunkBits {
		q.extend()
	}
	q.tail++
	c, i := q.at(seq)
	it := &c.items[i]
	it.number, it.link = k.Number, 0
	if last {
		it.link |= linkLast
	}
	if k.IsText {
		if c.texts == nil {
			c.texts = new([chunkSize]string)
		}
		it.link |= linkText
		c.texts[i] = k.Text
	}
	c.mark(i, q.steps)
	if ref, slot, ok := q.index.find(k, q); ok {
		before := q.widen(ref)
		q.setNext(seq, q.next(before))
		q.setNext(before, seq)
		q.index.set(slot, uint32(seq))
		return
	}
	q.setNext(seq, seq)
	q.index.add(k, uint32(seq))
}

func (q *queue) extend() {
	items := q.spare
	if items == nil {
		items = new([chunkSize]item)
	}
	q.spare = nil
	q.chunks = append(q.chunks, chunk{items: items})
}

// mark records the Advance steps before the i-th restore. A chunk stores them one by one from the first that differs.
func (c *chunk) mark(i int, steps int64) {
	if !c.started {
		c.started, c.base = true, steps
	}
	if c.steps == nil && steps != c.base {
		c.steps = new([chunkSize]int64)
		for j := range i {
			c.steps[j] = c.base
		}
	}
	if c.steps != nil {
		c.steps[i] = steps
	}
}

// pushDrop appends a drop of k, which is due when no restore before it is queued any more.
func (q *queue) pushDrop(k model.Key) { q.drops.push(q.tail, k) }

// advance adds steps intervals between the queued restores and later ones.
func (q *queue) advance(steps int64) {
	q.steps += min(max(steps, 0), mostSteps, farthest-q.steps)
}

// find returns the number of k's first queued restore.
func (q *queue) find(k model.Key) (int64, bool) {
	ref, _, ok := q.index.find(k, q)
	if !ok {
		return 0, false
	}
	return q.next(q.widen(ref)), true
}

// distance is the number of intervals between the last restore before the head and a queued restore, without restores that already happened.
func (q *queue) distance(seq int64) int64 { return q.place(seq) - q.now - q.holesBefore(seq) }

// ahead is the number of queued restores before seq.
func (q *queue) ahead(seq int64) int64 { return seq - q.head - q.holesBefore(seq) }

func (q *queue) holesBefore(seq int64) int64 {
	if len(q.holes) == 0 {
		return 0
	}
	return int64(sort.Search(len(q.holes), func(i int) bool { return q.holes[i] >= seq }))
}

// unlink removes the first restore of the key at seq from the index and reports whether it was the only one.
func (q *queue) unlink(seq int64) (only bool) {
	ref, slot, _ := q.index.find(q.key(seq), q)
	last := q.widen(ref)
	if last == seq {
		q.index.remove(slot)
		return true
	}
	q.setNext(last, q.next(seq))
	return false
}

// take removes the restore at seq, which must be the first of its key, because it happened. It returns the keys whose first restore was overtaken too
// often. They are withdrawn if no further restore of them is queued, otherwise deferred. Amortised O(1) for a restore in turn, O(patience) for one
// out of turn.
func (q *queue) take(seq int64) (withdrawn, deferred []model.Key) {
	q.unlink(seq)
	if seq == q.head {
		q.head++
		q.settle()
		return nil, nil
	}
	i := q.holesBefore(seq)
	q.holes = append(q.holes, 0)
	copy(q.holes[i+1:], q.holes[i:])
	q.holes[i] = seq
	if len(q.holes) <= q.patience {
		return nil, nil
	}
	for limit := q.holes[len(q.holes)-1-q.patience]; q.head < limit; q.pass() {
		k := q.key(q.head)
		if q.unlink(q.head) {
			withdrawn = append(withdrawn, k)
		} else {
			deferred = append(deferred, k)
		}
		q.head++
	}
	q.settle()
	return withdrawn, deferred
}

// pass moves the head over holes.
func (q *queue) pass() {
	n := 0
	for n < len(q.holes) && q.holes[n] == q.head {
		n++
		q.head++
	}
	if n > 0 {
		q.holes = q.holes[:copy(q.holes, q.holes[n:])]
	}
}

// settle updates now after the head moved, and frees the memory before the head.
func (q *queue) settle() {
	q.pass()
	q.now = q.place(q.head-1) + 1
	n := int((q.head - q.first) >> chunkBits)
	if n == 0 {
		return
	}
	q.spare = q.chunks[n-1].items
	clear(q.chunks[:n])
	q.chunks = q.chunks[n:]
	q.first += int64(n) << chunkBits
}

// walk calls f for the queued restores from number from on, in order, until f returns false. O(1) per restore.
func (q *queue) walk(from int64, f func(seq int64, k model.Key, last bool) bool) bool {
	seq := max(from, q.head)
	hole := int(q.holesBefore(seq))
	for ; seq < q.tail; seq++ {
		if hole < len(q.holes) && q.holes[hole] == seq {
			hole++
			continue
		}
		if !f(seq, q.key(seq), q.isLast(seq)) {
			return false
		}
	}
	return true
}

// reset removes all queued restores, drops and steps. The next restore is numbered from, or tail if that is higher.
func (q *queue) reset(from int64) {
	q.tail = max(q.tail, from)
	q.head = q.tail
	q.holes = q.holes[:0]
	q.drops = dropList{}
	q.index.clear()
	if len(q.chunks) > 0 {
		q.spare = q.chunks[0].items
	}
	q.chunks = nil
	q.first = q.head
	q.steps = 0
	q.now = q.tail
}

// renumber makes an empty queue number its next restore from, or tail if that is higher. Pending steps and drops stay.
func (q *queue) renumber(from int64) {
	if q.head != q.tail || from <= q.tail {
		return
	}
	q.now += from - q.tail
	q.head, q.tail, q.first = from, from, from
	q.chunks = nil
}

// dropList holds the drops of a queue, each with the number of the restore that follows it.
type dropList struct {
	list []queuedDrop
	done int
}

type queuedDrop struct {
	seq int64
	key model.Key
}

func (d *dropList) push(seq int64, k model.Key) { d.list = append(d.list, queuedDrop{seq, k}) }

// due removes the drops before the restore numbered head and appends their keys to keys. Amortised O(1) per drop.
func (d *dropList) due(head int64, keys []model.Key) []model.Key {
	for d.done < len(d.list) && d.list[d.done].seq <= head {
		keys = append(keys, d.list[d.done].key)
		d.list[d.done] = queuedDrop{}
		d.done++
	}
	if 2*d.done >= len(d.list) && d.done > 0 {
		d.list = append(d.list[:0], d.list[d.done:]...)
		d.done = 0
	}
	return keys
}
