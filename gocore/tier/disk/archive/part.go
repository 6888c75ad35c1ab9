package archive

import (
	"cmp"
	"fmt"
	"slices"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
)

// part is a rank's part of a key in the batch that is being brought.
type part struct {
	of    *rank
	row   catalog.Row // of the rank's store; place sets the offsets of its sources in the archive
	known bool        // the archive has it
	rooms []durable.Room
	news  []move          // rooms that the archive lacks
	off   int64           // of the own room in the archive
	err   error           // why a source could not be read
	seen  *durable.Stream // compares the bytes while they are copied; nil: they are read back
	wrong bool

	// Of a part of a plan, as the rank reports that has read it.
	reported bool
	checked  bool // it was compared with its checksums
	gone     bool // the rank's store does not have the version any more
}

// unread notes that a part could not be read.
func (x *part) unread(err error) {
	if vfs.Unreadable(err) { // the medium has lost the bytes, and the other keys go on
		x.wrong = true
	} else {
		x.err = cmp.Or(x.err, err)
	}
}

// move is a room on its way into the archive.
type move struct {
	room durable.Room
	at   int64
	sum  uint64 // of its bytes when they were verified in the rank's store, on the way into a bucket
}

// next takes keys from the queue, until a batch is full that is copied into so many files at once. Those that the archive has in this version are counted, and left out.
func (p *Push) next(files int) (batch []*task, err error) {
	bytes, parts := int64(0), 0
	planned := map[object]bool{}
	for len(p.queue) > 0 && aggregation.TakesMore(bytes, parts, files) {
		t := p.queue[0]
		p.queue = p.queue[1:]
		t.parts = nil
		there, err := p.look(t, planned)
		if err != nil {
			return nil, err
		}
		if there {
			p.done.Known++
			continue
		}
		for _, x := range t.parts {
			for _, m := range x.news {
				bytes += m.room.End - m.room.From
			}
		}
		parts += len(t.parts)
		batch = append(batch, t)
	}
	return batch, nil
}

// look finds the parts of a key, and what the archive lacks of them. there tells that it lacks nothing of the version that these parts are of. Rooms of objects that another part of the batch
// brings are in planned.
func (p *Push) look(t *task, planned map[object]bool) (there bool, err error) {
	p.guard.Lock()
	defer p.guard.Unlock()
	there = true
	var numbers []int
	for _, i := range t.ranks {
		x := &part{of: p.ranks[i]}
		numbers = append(numbers, x.of.number)
		state := x.of.from.State()
		id, _ := state.History(t.history)
		x.row, _ = state.Find(id, t.key) // gather has found it, and the view stays as it was
		if x.known = p.has(x, t); !x.known {
			there = false
			if x.rooms, err = x.of.from.Rooms(&x.row); err != nil {
				return false, fmt.Errorf("rank %d, checkpoint %s of history %.80q: %w", x.of.number, t.key, t.history, err)
			}
			for k, r := range x.rooms {
				of := object{x.of.number, r.Object}
				at, has := p.rooms[of]
				if r.Object != noObject && (planned[of] || has && (k > 0 || !p.owned[at])) {
					continue
				}
				planned[of] = true
				x.news = append(x.news, move{room: r})
			}
		}
		t.parts = append(t.parts, x)
	}
	having := p.having(t)
	t.stale = nil
	if there && p.hasList(t, having) { // with parts of more ranks, perhaps: these parts are of that version, so a run of fewer ranks has kept them
		return true, nil
	}
	for _, n := range having {
		if _, has := slices.BinarySearch(numbers, n); !has {
			t.stale = append(t.stale, n)
		}
	}
	return false, nil
}

// has tells whether the archive has this version of a part. Rows with the same checksums, of captures at the same time, have the same bytes. Without checksums the
// time tells alone: it counts nanoseconds.
func (p *Push) has(x *part, t *task) bool {
	id, _ := p.there.State().History(PartName(x.of.number, t.history))
	row, ok := p.there.State().Find(id, t.key)
	if !ok {
		return false
	}
	l, of := row.Layout, x.row.Layout
	return row.Time == x.row.Time && row.Meta == x.row.Meta && row.Align == x.row.Align &&
		l.Slot == of.Slot && l.Text == of.Text && slices.Equal(l.Spans, of.Spans) &&
		slices.Equal(row.Sums, x.row.Sums) && (row.Sums == nil) == (x.row.Sums == nil) && (row.Sums != nil || row.Time != 0)
}

// hasList tells whether the archive has the list of these ranks for a key.
func (p *Push) hasList(t *task, numbers []int) bool {
	id, _ := p.there.State().History(t.history)
	row, ok := p.there.State().Find(id, t.key)
	l := listLayout(len(numbers))
	return ok && row.Layout.Text == l.Text && row.Sums != nil && row.Sums[0] == checksum.Sum(numbersOf(numbers))
}

// having returns the numbers of the ranks of whose parts the archive has one for a key.
func (p *Push) having(t *task) (numbers []int) {
	for _, n := range p.parts[t.history] {
		id, _ := p.there.State().History(PartName(n, t.history))
		if _, ok := p.there.State().Serial(id, t.key); ok {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
