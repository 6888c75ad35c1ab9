package plan

// Ref is a small number that stands for a key of one history as long as somebody holds it: keys in a row get numbers in a row, so that what is kept by
// Ref lies together for neighbours. Afterwards it may stand for another key.
type Ref uint32

// Nobody is the Ref of no key.
const Nobody Ref = 0

// Keys is the one table of a history's keys. It finds numbers through pages of neighbours, so that a sweep forwards or backwards stays on the same few
// cache lines however many keys there are, and texts through a hash table. Finding, holding and releasing are O(1); growth copies no more than an
// index of pages.
//
// Memory per key: 24 bytes, and 5 to 6 to find a number among its neighbours, 150 to 165 one that has none, 11 to 21 and the string itself a text. All
// of it but the strings is free of pointers.
type Keys struct {
	rows   [][]row
	names  []*[1 << blockBits]string // parallel to rows; nil while a block holds numbers only
	free   Ref                       // chain of unused rows through next
	used   Ref                       // rows that have ever been in use
	n      int
	texts  table // text -> Ref
	pages  pages
	recent [4]*page // the pages that numbers were found on last, by the low bits of their places
}

// row is what a history knows of one key: all of it on one cache line, beside its neighbours'.
type row struct {
	number     int64
	prev, next Ref    // of the keys by their writing; next: of the unused rows
	seen       uint32 // position in the trail (low 32 bits)
	holders    uint8
	isText     bool
	live       bool // in the list of written keys
	remembered bool // seen is valid
}

const (
	blockBits = 10
	blockMask = 1<<blockBits - 1

	pageBits = 5
	pageMask = 1<<pageBits - 1
)

func (ks *Keys) row(r Ref) *row { return &ks.rows[r>>blockBits][r&blockMask] }

// Len is the number of keys that somebody holds.
func (ks *Keys) Len() int { return ks.n }

// Key is the key that r stands for.
func (ks *Keys) Key(r Ref) Key {
	if n := ks.row(r); !n.isText {
		return Key{Number: n.number}
	}
	return Key{Text: ks.names[r>>blockBits][r&blockMask], IsText: true}
}

func (ks *Keys) keyAt(ref uint32) Key { return ks.Key(Ref(ref)) }

// Find returns the Ref of k, or Nobody.
func (ks *Keys) Find(k Key) Ref {
	if k.IsText {
		ref, _, _ := ks.texts.find(k, ks)
		return Ref(ref)
	}
	if p := ks.page(k.Number); p != nil {
		return p.refs[k.Number&pageMask]
	}
	return Nobody
}

// Hold returns the Ref of k, which stands for k until it has been released as often as it was held. At most 255 holders.
func (ks *Keys) Hold(k Key) Ref {
	r := ks.Find(k)
	if r == Nobody {
		r = ks.add(k)
	}
	ks.row(r).holders++
	return r
}

// Release takes one Hold back.
func (ks *Keys) Release(r Ref) {
	n := ks.row(r)
	if n.holders--; n.holders == 0 {
		ks.remove(r)
	}
}

func (ks *Keys) page(number int64) *page {
	at := number >> pageBits
	if p := ks.recent[at&3]; p != nil && p.at == at {
		return p
	}
	p := ks.pages.find(at)
	if p != nil {
		ks.recent[at&3] = p
	}
	return p
}

func (ks *Keys) add(k Key) Ref {
	r := ks.take()
	*ks.row(r) = row{number: k.Number, isText: k.IsText}
	ks.n++
	if k.IsText {
		names := &ks.names[r>>blockBits]
		if *names == nil {
			*names = new([1 << blockBits]string)
		}
		(*names)[r&blockMask] = k.Text
		ks.texts.add(k, uint32(r))
		return r
	}
	p := ks.page(k.Number)
	if p == nil {
		p = ks.pages.add(k.Number >> pageBits)
	}
	p.refs[k.Number&pageMask] = r
	p.used++
	return r
}

func (ks *Keys) take() Ref {
	if r := ks.free; r != Nobody {
		ks.free = ks.row(r).next
		return r
	}
	ks.used++ // the first is 1: none is Nobody
	if r := ks.used; int(r>>blockBits) < len(ks.rows) {
		return r
	}
	ks.rows = append(ks.rows, make([]row, 1<<blockBits))
	ks.names = append(ks.names, nil)
	return ks.used
}

func (ks *Keys) remove(r Ref) {
	k := ks.Key(r)
	if k.IsText {
		_, slot, _ := ks.texts.find(k, ks)
		ks.texts.remove(slot)
		ks.names[r>>blockBits][r&blockMask] = ""
	} else {
		p := ks.page(k.Number)
		p.refs[k.Number&pageMask] = Nobody
		if p.used--; p.used == 0 {
			ks.recent[p.at&3] = nil
			ks.pages.remove(p)
		}
	}
	*ks.row(r) = row{next: ks.free}
	ks.free = r
	if ks.n--; ks.n == 0 && len(ks.rows) > 1 {
		*ks = Keys{}
	}
}

// page holds the Refs of so many neighbouring numbers.
type page struct {
	at   int64 // number >> pageBits
	used int32
	id   uint32
	refs [1 << pageBits]Ref
}

// pages finds a page by its place: at once while the places run from zero on without many holes, or else through a hash table. Pages lie in blocks, in the
// order of their making.
type pages struct {
	near   []*page // by place
	blocks [][]page
	vacant []uint32
	made   uint32
	n      int
	far    table // place -> id, of the others
}

const (
	pagesBits = 5
	sparse    = 4 // places in near for each page
)

func (ps *pages) page(id uint32) *page { return &ps.blocks[id>>pagesBits][id&(1<<pagesBits-1)] }

func (ps *pages) keyAt(ref uint32) Key { return Number(ps.page(ref).at) }

func (ps *pages) find(at int64) *page {
	if uint64(at) < uint64(len(ps.near)) {
		return ps.near[at]
	}
	if id, _, ok := ps.far.find(Number(at), ps); ok {
		return ps.page(id)
	}
	return nil
}

func (ps *pages) add(at int64) *page {
	id := ps.made
	if n := len(ps.vacant); n > 0 {
		id = ps.vacant[n-1]
		ps.vacant = ps.vacant[:n-1]
	} else {
		if ps.made++; int(id>>pagesBits) == len(ps.blocks) {
			ps.blocks = append(ps.blocks, make([]page, 1<<pagesBits))
		}
	}
	p := ps.page(id)
	p.at, p.id = at, id
	ps.n++
	if ps.reach(at) {
		ps.near[at] = p
	} else {
		ps.far.add(Number(at), id)
	}
	return p
}

// reach tells whether a place is near, or near enough to the others to become so.
func (ps *pages) reach(at int64) bool {
	if at < 0 || at >= int64(sparse*ps.n) && at >= int64(len(ps.near)) {
		return false
	}
	for next := int64(len(ps.near)); next <= at; next++ {
		var p *page
		if id, slot, ok := ps.far.find(Number(next), ps); ok {
			ps.far.remove(slot)
			p = ps.page(id)
		}
		ps.near = append(ps.near, p)
	}
	return true
}

func (ps *pages) remove(p *page) {
	if uint64(p.at) < uint64(len(ps.near)) {
		ps.near[p.at] = nil
	} else if _, slot, ok := ps.far.find(Number(p.at), ps); ok {
		ps.far.remove(slot)
	}
	ps.n--
	ps.vacant = append(ps.vacant, p.id)
}
