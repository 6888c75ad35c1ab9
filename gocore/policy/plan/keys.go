package plan

import "velocpy/gocore/model"

// Ref is a small number that stands for a key of one history while the key is held. Consecutive numbers get consecutive Refs, so that data kept by
// Ref is adjacent for neighbours. After the last Release the Ref may stand for another key.
type Ref uint32

// Nobody is the Ref of no key.
const Nobody Ref = 0

// Keys is the one table of a history's keys. Numbers that continue, without many holes, with the stride between the first two are in groups of
// neighbours, found by their place. So a sweep forwards or backwards stays on the same few cache lines however many keys there are. A jump touches
// one new line. All other keys go through a hash table. Finding, holding and releasing are O(1); growth copies no more than the list of groups or the
// hash table.
//
// Memory per key: 25 bytes, up to 125 with many holes. The hash table adds 11 to 21 bytes, and the text. A number whose neighbours are gone keeps the
// room of its group.
type Keys struct {
	rows   []*[groupSize]row // by group; free of pointers
	groups []group
	// near lists the groups by the place of their numbers in the sequence that begins at first: index place >> groupBits; 0: none.
	near   []uint32
	first  int64
	stride int64    // 0: unknown before there is a second number
	lined  int      // groups in near
	empty  []uint32 // groups without keys
	free   Ref      // unused rows of the other groups, chained through next
	far    table    // key -> Ref, of the keys that are not near
	n      int
}

// row is the state of one key in a history. It is on one cache line, beside its neighbours'.
type row struct {
	number     int64
	prev, next Ref    // in the list of keys by their writing; next: also of the unused rows
	seen       uint32 // position in the trail (low 32 bits)
	holders    uint8  // 0: the row is not in use
	isText     bool
	live       bool // in the list of written keys
	remembered bool // seen is valid
}

// group is the further state of 32 rows: of neighbours in near, or of any keys.
type group struct {
	texts *[groupSize]string // nil while there are none
	place int64              // in near, or -1
	used  int32
}

const (
	groupBits = 5
	groupSize = 1 << groupBits
	groupMask = groupSize - 1

	// Numbers get a group of neighbours within two bounds. Such groups have at most thin rows per key, and places reach at most wide times as far as
	// the groups do.
	thin, wide = 4, 4
	firstFew   = 16 // the first groups are exempt from these bounds
	fewKeys    = 64
)

func (ks *Keys) row(r Ref) *row { return &ks.rows[r>>groupBits][r&groupMask] }

// Len is the number of held keys.
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

// place is the position of a number in the sequence that starts at first with the stride. No two numbers have the same.
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

// Release undoes one Hold.
func (ks *Keys) Release(r Ref) {
	x := ks.row(r)
	if x.holders--; x.holders == 0 {
		ks.remove(r)
	}
}

// add gives k, which has no row, a row without holders.
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

// beside returns the row for k in the group of its neighbours, if it belongs there.
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

// learn takes the sequence from the first two numbers; the place of the first does not depend on the stride. While there are few keys and the next
// number is not in the sequence, it starts another one. The first key written may be a model beside a sequence of states.
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

// scatter turns a group of neighbours into a group of any keys.
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

// open returns an empty group, for the neighbours at a place or, with -1, for any keys.
func (ks *Keys) open(place int64) (id uint32) {
	if n := len(ks.empty); n > 0 {
		id, ks.empty = ks.empty[n-1], ks.empty[:n-1]
	} else {
		if len(ks.rows) == 0 {
			// Group 0 stays unused, so that no Ref is Nobody.
			ks.rows, ks.groups = append(ks.rows, nil), append(ks.groups, group{})
		}
		id = uint32(len(ks.rows))
		ks.rows, ks.groups = append(ks.rows, new([groupSize]row)), append(ks.groups, group{})
	}
	ks.groups[id].place = place
	return id
}

// take returns an unused row of a group of any keys.
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
