package plan

import "velocpy/gocore/model"

// Ref is a small number that stands for a key of one history as long as somebody holds it: numbers in a row get Refs in a row, so that what is kept by
// Ref lies together for neighbours. Afterwards it may stand for another key.
type Ref uint32

// Nobody is the Ref of no key.
const Nobody Ref = 0

// Keys is the one table of a history's keys. Numbers that go on, without many holes, with the stride between the first two lie in groups of neighbours that
// are found by their place, so that a sweep forwards or backwards stays on the same few cache lines however many keys there are, and a jump meets one
// new line. All other keys go through a hash table. Finding, holding and releasing are O(1); growth copies no more than the list of groups or the
// hash table.
//
// Memory per key: 25 bytes, up to 125 where there are many holes; and 11 to 21 in the hash table, and the text. A number whose neighbours have gone
// keeps the room of its group.
type Keys struct {
	rows   []*[groupSize]row // by group; free of pointers
	groups []group
	near   []uint32 // by place of numbers in the row that begins at first, place >> groupBits: the group; 0: none
	first  int64
	stride int64    // 0: not known before there is a second number
	lined  int      // groups in near
	empty  []uint32 // groups that nothing is in
	free   Ref      // unused rows of the other groups, chained through next
	far    table    // key -> Ref, of those that are not near
	n      int
}

// row is what a history knows of one key: all of it on one cache line, beside its neighbours'.
type row struct {
	number     int64
	prev, next Ref    // of the keys by their writing; next: of the unused rows
	seen       uint32 // position in the trail (low 32 bits)
	holders    uint8  // 0: the row is not in use
	isText     bool
	live       bool // in the list of written keys
	remembered bool // seen is valid
}

// group is what else there is to know of 32 rows: those of neighbours in near, or of any keys.
type group struct {
	texts *[groupSize]string // nil while there are none
	place int64              // in near, or -1
	used  int32
}

const (
	groupBits = 5
	groupSize = 1 << groupBits
	groupMask = groupSize - 1

	// Numbers get a group of neighbours while such groups have at most so many rows for each key, and places reach so many times as far as they do.
	thin, wide = 4, 4
	firstFew   = 16 // groups that need not be asked
	fewKeys    = 64
)

func (ks *Keys) row(r Ref) *row { return &ks.rows[r>>groupBits][r&groupMask] }

// Len is the number of keys that somebody holds.
func (ks *Keys) Len() int { return ks.n }

// Key is the key that r stands for.
func (ks *Keys) Key(r Ref) model.Key {
	if x := ks.row(r); !x.isText {
		return model.Key{Number: x.number}
	}
	return model.Key{Text: ks.groups[r>>groupBits].texts[r&groupMask], IsText: true}
}

func (ks *Keys) keyAt(ref uint32) model.Key { return ks.Key(Ref(ref)) }

// Find returns the Ref of k, or Nobody.
func (ks *Keys) Find(k model.Key) Ref {
	if place, ok := ks.place(k); ok && place>>groupBits < uint64(len(ks.near)) {
		if g := ks.near[place>>groupBits]; g != 0 && ks.rows[g][place&groupMask].holders != 0 {
			return refIn(g, place)
		}
	}
	ref, _, _ := ks.far.find(k, ks)
	return Ref(ref)
}

// place is where a number stands in the row that goes on from the first with the stride. No two numbers have the same.
func (ks *Keys) place(k model.Key) (place uint64, ok bool) {
	d := k.Number - ks.first
	switch {
	case k.IsText:
		return 0, false
	case ks.stride > 1 || ks.stride < 0:
		if d%ks.stride != 0 {
			return 0, false
		}
		d /= ks.stride
	}
	return uint64(d), d >= 0
}

func refIn(group uint32, place uint64) Ref { return Ref(group<<groupBits) | Ref(place&groupMask) }

// Hold returns the Ref of k, which stands for k until it has been released as often as it was held. At most 255 holders.
func (ks *Keys) Hold(k model.Key) Ref {
	r := ks.Find(k)
	if r == Nobody {
		r = ks.add(k)
	}
	ks.row(r).holders++
	return r
}

// Release takes one Hold back.
func (ks *Keys) Release(r Ref) {
	x := ks.row(r)
	if x.holders--; x.holders == 0 {
		ks.remove(r)
	}
}

// add gives k, which has none, a row without holders.
func (ks *Keys) add(k model.Key) Ref {
	ks.n++
	r, near := ks.beside(k)
	if !near {
		r = ks.take()
		ks.far.add(k, uint32(r))
	}
	*ks.row(r) = row{number: k.Number, isText: k.IsText}
	x := &ks.groups[r>>groupBits]
	x.used++
	if k.IsText {
		if x.texts == nil {
			x.texts = new([groupSize]string)
		}
		x.texts[r&groupMask] = k.Text
	}
	return r
}

// beside returns the row for k in the group of its neighbours, if it is to lie there.
func (ks *Keys) beside(k model.Key) (r Ref, ok bool) {
	if k.IsText {
		return Nobody, false
	}
	ks.learn(k.Number)
	place, ok := ks.place(k)
	at := place >> groupBits
	switch {
	case !ok:
		return Nobody, false
	case at < uint64(len(ks.near)) && ks.near[at] != 0:
		return refIn(ks.near[at], place), true
	case ks.lined >= firstFew+thin*ks.n>>groupBits || at >= uint64(wide*(ks.lined+firstFew)):
		return Nobody, false
	}
	for uint64(len(ks.near)) <= at {
		ks.near = append(ks.near, 0)
	}
	g := ks.open(int64(at))
	ks.near[at] = g
	ks.lined++
	return refIn(g, place), true
}

// learn takes the row that numbers stand in from the first two, whose place does not depend on the stride, and looks for another one while there are
// but a few and the next does not stand in it: what is written first may be a model beside a row of states.
func (ks *Keys) learn(number int64) {
	if _, ok := ks.place(model.NumberKey(number)); !ok && ks.stride != 0 && ks.n < fewKeys && ks.lined == 1 {
		if id := ks.near[0]; id != 0 && ks.groups[id].used <= 2 {
			ks.scatter(id)
		}
	}
	switch {
	case ks.lined == 0:
		ks.near, ks.first, ks.stride = ks.near[:0], number, 0
	case ks.stride == 0 && number != ks.first:
		ks.stride = number - ks.first
	}
}

// scatter makes a group of neighbours one of any keys.
func (ks *Keys) scatter(id uint32) {
	ks.near[ks.groups[id].place] = 0
	ks.lined--
	ks.groups[id].place = -1
	for i := range ks.rows[id] {
		x, r := &ks.rows[id][i], Ref(id<<groupBits)|Ref(i)
		if x.holders != 0 {
			ks.far.add(model.NumberKey(x.number), uint32(r))
		} else {
			*x = row{next: ks.free}
			ks.free = r
		}
	}
}

// open returns a group that is empty, for the neighbours at a place or, with -1, for any keys.
func (ks *Keys) open(place int64) (id uint32) {
	if n := len(ks.empty); n > 0 {
		id, ks.empty = ks.empty[n-1], ks.empty[:n-1]
	} else {
		if len(ks.rows) == 0 {
			ks.rows, ks.groups = append(ks.rows, nil), append(ks.groups, group{}) // so that no Ref is Nobody
		}
		id = uint32(len(ks.rows))
		ks.rows, ks.groups = append(ks.rows, new([groupSize]row)), append(ks.groups, group{})
	}
	ks.groups[id].place = place
	return id
}

// take returns an unused row among any keys.
func (ks *Keys) take() Ref {
	if ks.free == Nobody {
		id := ks.open(-1)
		for i := Ref(groupMask); ; i-- {
			r := Ref(id<<groupBits) | i
			*ks.row(r) = row{next: ks.free}
			if ks.free = r; i == 0 {
				break
			}
		}
	}
	r := ks.free
	ks.free = ks.row(r).next
	return r
}

func (ks *Keys) remove(r Ref) {
	id := uint32(r >> groupBits)
	c := &ks.groups[id]
	c.used--
	if c.place < 0 {
		_, slot, _ := ks.far.find(ks.Key(r), ks)
		ks.far.remove(slot)
		if c.texts != nil {
			c.texts[r&groupMask] = ""
		}
		*ks.row(r) = row{next: ks.free}
		ks.free = r
	} else if c.used == 0 {
		ks.near[c.place] = 0
		ks.lined--
		ks.empty = append(ks.empty, id)
	}
	if ks.n--; ks.n == 0 && len(ks.rows) > firstFew {
		*ks = Keys{}
	}
}
