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

// Rebuilt reports the content that a rebuild found in data files and the catalog lacked.
type Rebuilt struct {
	Identity bool // it was written again, from the heads of data files
	Found    int  // checkpoints that were added to the catalog
	Changed  int  // left out: their bytes are missing or differ, for example as a newer checkpoint overwrote them
	Unproven int  // left out: they have no checksums that could verify their bytes
}

// candidate is a checkpoint that an index lists, with its range and its rooms.
type candidate struct {
	run
	rooms   []claim
	history string
	row     catalog.Row
}

// lying identifies a version of a checkpoint at an offset of the space.
type lying struct {
	serial uint64
	from   int64
}

// rebuild adds to the state the checkpoints that the data files' indexes list and it lacks, the newest version of each key first. A candidate counts if no
// newer checkpoint contradicts it about a room and its bytes match its checksums; those of a difference need all its sources. One without checksums counts only if unproven is set.
//
// A dropped checkpoint comes back if its bytes are still there; retentions do not come back. The content of all indexes is in memory for a moment.
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
	c.eachClaim(b.rooms.add)
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

// candidates returns the checkpoints that the indexes list, newest first and each once, except those that are known to have been dropped.
func (f *files) candidates(data *segment.Space) (all []candidate, gone map[lying]bool, err error) {
	files, err := f.Lengths()
	if err != nil {
		return nil, nil, err
	}
	gone = map[lying]bool{}
	for _, n := range slices.Sorted(maps.Keys(files)) {
		some, err := f.candidatesIn(data, uint64(n)+1, gone)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, some...)
	}
	all = slices.DeleteFunc(all, func(x candidate) bool { return gone[lying{x.row.Serial, x.from}] })
	slices.SortFunc(all, func(a, b candidate) int { // of equal candidates, the one with leaf hashes comes first
		return cmp.Or(cmp.Compare(b.row.Serial, a.row.Serial), cmp.Compare(a.from, b.from), cmp.Compare(len(b.row.Leaves), len(a.row.Leaves)))
	})
	all = slices.CompactFunc(all, func(a, b candidate) bool { return a.row.Serial == b.row.Serial && a.from == b.from })
	for _, x := range all {
		for _, r := range x.rooms {
			data.Grow(r.end)
		}
	}
	return all, gone, nil
}

// dropGone drops rows from the state whose range was written to again according to an index: the damaged part of the catalog had recorded that they were
// dropped.
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

// candidatesIn returns the candidates in the index of one data file. A range is reused only after the checkpoint in it was dropped or replaced, and after all
// that have it for a source. So entries that contradict a later entry about a room go into gone.
func (f *files) candidatesIn(data *segment.Space, number uint64, gone map[lying]bool) ([]candidate, error) {
	var said []candidate
	err := f.indexed(data, number, func(s *catalog.State) {
		s.EachIn(number, func(history string, row catalog.Row) bool {
			if rooms, ok := f.identity.claims(&row); ok {
				said = append(said, candidate{rooms[0].run, rooms, history, row})
			}
			return true
		})
	})
	var rooms rooms
	var left []candidate
	seen := map[lying]bool{}
	for _, x := range slices.Backward(said) {
		here := lying{x.row.Serial, x.from}
		switch {
		case seen[here]:
		//mutation:overwritten-rows-return
		case !rooms.admits(x.rooms):
			gone[here] = true
		default:
			seen[here] = true
			rooms.add(x.rooms)
			left = append(left, x)
		}
	}
	if err != nil {
		return nil, err
	}
	late, err := f.candidatesAhead(number, said)
	return append(left, late...), err
}

// candidatesAhead returns the candidates that the commit area of a data file has and its index does not have yet; said lists those of the index. A frame
// that relies on definitions elsewhere gives none.
func (f *files) candidatesAhead(number uint64, said []candidate) (late []candidate, err error) {
	if !f.identity.commits {
		return nil, nil
	}
	known := map[lying]bool{}
	for _, x := range said {
		known[lying{x.row.Serial, x.from}] = true
	}
	area, err := f.readArea(number)
	for _, frame := range area.frames {
		s := catalog.New()
		if s.Apply(frame.Payload) != nil {
			continue
		}
		s.EachIn(number, func(history string, row catalog.Row) bool {
			if rooms, ok := f.identity.claims(&row); ok && !known[lying{row.Serial, rooms[0].from}] {
				late = append(late, candidate{rooms[0].run, rooms, history, row})
			}
			return true
		})
	}
	return late, err
}

// rebuilding selects candidates.
type rebuilding struct {
	*Check
	*window
	unproven bool
	rooms    rooms          // of committed and selected checkpoints
	keys     map[keyOf]bool // selected keys
	taken    []candidate
	latest   uint64 // serial of the candidate that was selected last
	newest   uint64 // largest serial in use
	got      Rebuilt
}

// consider selects a candidate if it counts.
func (b *rebuilding) consider(x candidate) {
	key := keyOf{x.history, x.row.Key}
	switch {
	case b.keys[key] || b.known(x.history, x.row.Key, x.row.Serial):
		return
	case !b.rooms.admits(x.rooms):
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
	if serial := x.row.Serial; len(b.taken) > 0 && serial == b.latest { // one of the two was never acknowledged, and its serial was used again
		b.newest++
		x.row.Serial = b.newest
	} else {
		b.latest = serial
	}
	b.keys[key] = true
	b.rooms.add(x.rooms)
	b.taken = append(b.taken, x)
	b.got.Found++
}

// known tells whether the state has this version of a key or a newer one.
func (b *rebuilding) known(history string, key model.Key, serial uint64) bool {
	id, ok := b.v.state.History(history)
	if !ok {
		return false
	}
	has, ok := b.v.state.Serial(id, key)
	return ok && has >= serial
}

// right tells whether the bytes of a candidate exist and match its checksums.
func (b *rebuilding) right(x candidate) bool {
	described := describing(&b.v.o)
	if described.wrong(&x.row) != nil {
		return false
	}
	for cut := (cutter{row: &x.row, lies: x.run, ends: x.end, read: true}); ; {
		p, ok := cut.next()
		if !ok {
			return true
		}
		b.begin(p.lies.end)
		if len(b.examine(b.window, p)) > 0 {
			return false
		}
	}
}

// take adds the selected candidates to the state, oldest first. Later checkpoints get larger serials than any in an index.
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

// identityFromHeads restores a missing or damaged identity from the heads of the data files, if they agree.
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

// identityFromHead derives the identity of a store from the head of a data file.
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
