package durable

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// Rebuilt is what a rebuild has found in data files that the catalog did not say.
type Rebuilt struct {
	Identity bool // it was written again, from the heads of data files
	Found    int  // checkpoints that are in the catalog now
	Changed  int  // left out: their bytes are missing, or others than were written, as when something newer lies there
	Unproven int  // left out: without checksums nothing says whether their bytes are theirs
}

// candidate is a checkpoint that an index says, and where it lies.
type candidate struct {
	run
	history string
	row     catalog.Row
}

// lying is a version of a checkpoint at a place.
type lying struct {
	serial uint64
	from   int64
}

// rebuild takes into the state what the indexes of the data files say and it lacks, the newest version of each key first. What does not lie where something newer
// does, and has the bytes that its checksums say, counts. A checkpoint without checksums counts if unproven ones are asked for.
//
// A checkpoint that was dropped comes back if its bytes are still there; retentions do not. All that the indexes say is in memory for a moment.
func (c *contents) rebuild(unproven bool) (got Rebuilt, err error) {
	data, err := c.space(true)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	all, gone, err := c.candidates(data)
	if err == nil {
		err = c.dropGone(gone)
	}
	if err != nil {
		return got, err
	}
	check := &Check{v: &View{contents: c, data: data}}
	if err := check.listFiles(c); err != nil {
		return got, err
	}
	w, err := newWindow(data)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	b := rebuilding{Check: check, window: w, unproven: unproven, keys: map[keyOf]bool{}}
	for _, r := range c.runs {
		b.places.add(r)
	}
	if len(all) == 0 {
		return got, nil
	}
	b.newest = max(all[0].row.Serial, c.state.MaxSerial())
	for _, x := range all {
		b.consider(x)
	}
	if err := b.take(); err != nil {
		return b.got, err
	}
	c.runs, err = c.survey()
	return b.got, err
}

// candidates are what the indexes say, the newest first, and each once, but for what is known to have been dropped.
func (c *contents) candidates(data *segment.Space) (all []candidate, gone map[lying]bool, err error) {
	files, err := c.lengths()
	if err != nil {
		return nil, nil, err
	}
	gone = map[lying]bool{}
	for _, n := range slices.Sorted(maps.Keys(files)) {
		some, err := c.candidatesIn(data, uint64(n)+1, gone)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, some...)
	}
	all = slices.DeleteFunc(all, func(x candidate) bool { return gone[lying{x.row.Serial, x.from}] })
	slices.SortFunc(all, func(a, b candidate) int { // what has leaves comes first of those that are the same
		return cmp.Or(cmp.Compare(b.row.Serial, a.row.Serial), cmp.Compare(a.from, b.from), cmp.Compare(len(b.row.Leaves), len(a.row.Leaves)))
	})
	all = slices.CompactFunc(all, func(a, b candidate) bool { return a.row.Serial == b.row.Serial && a.from == b.from })
	for _, x := range all {
		data.Grow(x.end)
	}
	return all, gone, nil
}

// dropGone takes rows out of the state of which an index says that something else was written to their place: that they went stood in the part of the catalog that is
// damaged.
func (c *contents) dropGone(gone map[lying]bool) error {
	drops := map[uint64]uint32{}
	for _, h := range c.state.Histories() {
		c.state.Each(h.ID, func(row catalog.Row) bool {
			if r, ok := c.identity.place(row.Extents); ok && gone[lying{row.Serial, r.from}] {
				drops[row.Serial] = h.ID
			}
			return true
		})
	}
	err := c.forget(drops)
	if err == nil {
		c.runs, err = c.survey()
	}
	return err
}

// candidatesIn are those that the index of one data file says. A place is written to again only when what lay there is gone, so what was said before of the place of
// another one is: that goes into gone.
func (c *contents) candidatesIn(data *segment.Space, number uint64, gone map[lying]bool) ([]candidate, error) {
	var said []candidate
	err := c.indexed(data, number, func(s *catalog.State) {
		s.EachIn(number, func(history string, row catalog.Row) bool {
			if r, ok := c.identity.place(row.Extents); ok {
				said = append(said, candidate{r, history, row})
			}
			return true
		})
	})
	var places places
	var left []candidate
	seen := map[lying]bool{}
	for _, x := range slices.Backward(said) {
		here := lying{x.row.Serial, x.from}
		switch {
		case seen[here]:
		//mutation:overwritten-rows-return
		case places.covers(x.run):
			gone[here] = true
		default:
			seen[here] = true
			places.add(x.run)
			left = append(left, x)
		}
	}
	if err != nil {
		return nil, err
	}
	late, err := c.candidatesAhead(number, said)
	return append(left, late...), err
}

// candidatesAhead are those that the commit area of a data file says and its index, which says others, does not yet. A frame without the definitions that it
// relies on says nothing.
func (c *contents) candidatesAhead(number uint64, said []candidate) (late []candidate, err error) {
	if !c.identity.commits {
		return nil, nil
	}
	known := map[lying]bool{}
	for _, x := range said {
		known[lying{x.row.Serial, x.from}] = true
	}
	area, err := c.readArea(number)
	for _, frame := range area.frames {
		s := catalog.New()
		if s.Apply(frame.Payload) != nil {
			continue
		}
		s.EachIn(number, func(history string, row catalog.Row) bool {
			if r, ok := c.identity.place(row.Extents); ok && !known[lying{row.Serial, r.from}] {
				late = append(late, candidate{r, history, row})
			}
			return true
		})
	}
	return late, err
}

// rebuilding chooses among candidates.
type rebuilding struct {
	*Check
	*window
	unproven bool
	places   places         // of what counts
	keys     map[keyOf]bool // of what was taken
	taken    []candidate
	latest   uint64 // the serial of what was taken last
	newest   uint64 // the largest serial that there is
	got      Rebuilt
}

// consider takes a candidate if it counts.
func (b *rebuilding) consider(x candidate) {
	key := keyOf{x.history, x.row.Key}
	switch {
	case b.keys[key] || b.known(x.history, x.row.Key, x.row.Serial):
		return
	case b.places.covers(x.run):
		b.got.Changed++
		return
	case x.row.Sums == nil && !b.unproven:
		b.got.Unproven++
		return
	//mutation:rebuild-trusts-indexes
	case !b.right(x):
		b.got.Changed++
		return
	}
	if serial := x.row.Serial; len(b.taken) > 0 && serial == b.latest { // one of them was never acknowledged, and its serial given again
		b.newest++
		x.row.Serial = b.newest
	} else {
		b.latest = serial
	}
	b.keys[key] = true
	b.places.add(x.run)
	b.taken = append(b.taken, x)
	b.got.Found++
}

// known tells whether the state has this version of a key, or a newer one.
func (b *rebuilding) known(history string, key model.Key, serial uint64) bool {
	id, ok := b.v.state.History(history)
	if !ok {
		return false
	}
	has, ok := b.v.state.Serial(id, key)
	return ok && has >= serial
}

// right tells whether the bytes of a candidate are there, and what its checksums say.
func (b *rebuilding) right(x candidate) bool {
	described := describing(&b.v.o)
	if described.wrong(&x.row) != nil {
		return false
	}
	for cut := (cutter{row: &x.row, place: x.from, ends: x.end, read: true}); ; {
		p, ok := cut.next()
		if !ok {
			return true
		}
		b.begin(p.reaches())
		if len(b.examine(b.window, p)) > 0 {
			return false
		}
	}
}

// take puts what was chosen into the state, the oldest first. What is written later gets larger serials than all that any index says.
func (b *rebuilding) take() error {
	writer := catalog.NewWriter(b.v.state)
	say := func(f func(*catalog.Record) error) error {
		record := writer.Record()
		if err := f(record); err != nil {
			writer.Abandoned(record)
			return err
		}
		return writer.Acknowledged(record)
	}
	if err := say(func(r *catalog.Record) error { return r.Given(b.newest) }); err != nil {
		return err
	}
	for _, x := range slices.Backward(b.taken) {
		if err := say(func(r *catalog.Record) error { return r.Put(x.history, &x.row) }); err != nil {
			return err
		}
	}
	return nil
}

// identityFromHeads writes the identity of a store again that has none: the heads of its data files say what it was. They have to agree.
func (o *Options) identityFromHeads() (restored bool, err error) {
	_, err = readIdentity(o)
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNoStore) {
		return false, err
	}
	names, listing := o.FS.List(o.Dir)
	if listing != nil {
		return false, errors.Join(err, listing)
	}
	said := map[identity][]string{}
	for _, name := range names {
		if number, ok := segment.FileNumber(name); ok {
			if i, ok := o.identityFromHead(name, number); ok {
				said[i] = append(said[i], name)
			}
		}
	}
	switch len(said) {
	case 0:
		return false, err
	case 1:
	default:
		return false, fmt.Errorf("%w: there are data files of %d stores, and nothing says which one this is: %v; move the others out of this directory",
			err, len(said), slices.Collect(maps.Values(said)))
	}
	for i := range said {
		if err := removeAny(o, identityName); err != nil {
			return false, err
		}
		if err := errors.Join(writeIdentity(o, &i), writeCopy(o, &i)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// identityFromHead is what the head of a data file says of its store.
func (o *Options) identityFromHead(name string, number uint64) (i identity, ok bool) {
	file, err := o.FS.Open(o.path(name), false, false)
	if err != nil {
		return i, false
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	p := make([]byte, segment.HeadBytes)
	if n, _ := file.ReadAt(p, 0); n < len(p) {
		return i, false
	}
	h, version, ok := segment.ParseHead(p)
	i = identity{store: h.Store, segment: h.SegmentBytes, heads: true, index: h.Index > 0}
	i.commits = i.index && h.Index != i.indexBytes()
	parsed, wrong := parseIdentity(i.bytes())
	known := version == 1 && h.Index == 0 || version == 2 && h.Index > 0
	return parsed, ok && known && wrong == nil && h.Number == number && h.Index == i.indexBytes()+i.commitBytes()
}
