package engine

import (
	"cmp"
	"errors"
	"iter"
	"maps"
	"slices"
	"syscall"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"

	"pgregory.net/rapid"
)

// catalog plays the part of a store with durable tiers: the checkpoints there, by key.
type catalog struct {
	w         *world
	rows      []map[model.Key]*row // by history
	owned     map[*Record]*row     // records that have a row's room, whether the row is still in the catalog or not
	committed map[*Transfer]bool   // transfers whose row is in the catalog before the engine hears of their end
	drops     []*dropping          // those that are not durable yet
	failing   map[*Record]*row     // commits of unknown outcome, while the engine is told
	unsure    []*row               // their rooms: the catalog of the next process may refer to them, until another commit succeeds here
	retired   map[int][][2]int64   // by tier
	owing     bool                 // drops were under way when the world was last observed
	stayed    map[int]bool         // contents that were in a range when it was retired
}

// row is one checkpoint of the catalog.
type row struct {
	hi, tier                  int
	key                       model.Key
	serial, off, size, extent int64
	stored                    int64  // bytes in the form of the tier
	shape                     *Shape // with the sizes that are known; nil: raw everywhere
	align                     int64
	top, content              int
	owner                     *Record // the record that has the room; nil: it is reserved
	dropping                  bool    // a drop of it is under way
	replaced                  bool    // its record gave way to a later version: this engine does not find it again, even if that version is never committed
	given                     bool    // its room was given back, or will be by its owner
}

type dropping struct {
	hi  int
	key model.Key
	row *row // nil: only commits of unknown outcome have the key
}

func newCatalog(w *world) *catalog {
	c := &catalog{w: w, rows: []map[model.Key]*row{{}, {}}}
	c.begin()
	return c
}

// begin forgets the state that only a process has.
func (c *catalog) begin() {
	c.owned, c.committed, c.failing = map[*Record]*row{}, map[*Transfer]bool{}, map[*Record]*row{}
	c.drops, c.unsure, c.retired, c.stayed = nil, nil, map[int][][2]int64{}, map[int]bool{}
}

var _ Catalog = (*catalog)(nil)

// catalogued tells whether the world's catalog lists the checkpoints in tier t.
func (w *world) catalogued(t int) bool { return w.cat != nil && w.cfg.Tiers[t].Durable }

// durable draws a durable tier.
func (c *catalog) durable(t *rapid.T) int {
	var tiers []int
	for i := range c.w.cfg.Tiers {
		if c.w.catalogued(i) {
			tiers = append(tiers, i)
		}
	}
	return rapid.SampledFrom(tiers).Draw(t, "durable")
}

// findable is the row from which a record of a key can be made, if the key has none.
func (c *catalog) findable(hi int, k model.Key) *row {
	if c == nil {
		return nil
	}
	if row := c.rows[hi][k]; row != nil && !row.dropping && !row.replaced && row.owner == nil {
		return row
	}
	return nil
}

// Lookup implements Catalog, as the methods after it do.
func (c *catalog) Lookup(h *History, k model.Key) (size int64, ok bool) {
	row := c.findable(c.w.index(h), k)
	if row == nil {
		return 0, false
	}
	return row.size, true
}

func (c *catalog) Find(h *History, k model.Key) *Record {
	i := c.w.index(h)
	row := c.findable(i, k)
	if row == nil {
		return nil
	}
	r := c.w.e.Adopt(h, k, Stored{
		Tier: row.tier, Size: row.size, Align: row.align, Offset: row.off, Top: row.top, Written: row.serial, Version: content(row.content),
		Shape: row.shape,
	})
	row.owner, c.owned[r], c.w.truth[i][k] = r, row, r
	c.w.born = append(c.w.born, r)
	if r.Written() != row.serial || r.Top() != row.top || !r.Captured() || c.w.e.Fastest(r) != row.tier {
		c.w.fatalf("%+v was adopted as %+v", *row, *r)
	}
	return r
}

func (c *catalog) Keeps(r *Record, t int, off int64) bool {
	if !c.w.catalogued(t) {
		c.w.fatalf("the catalog is asked for %v in tier %d", r.Key, t)
	}
	if row := c.failing[r]; row != nil && row.tier == t {
		delete(c.failing, r)
		c.unsure = append(c.unsure, row)
		return true
	}
	row := c.owned[r]
	if row == nil || row.tier != t { // the copy was loaded from a lower tier, or has been flushed there since
		return false
	}
	if row.off != off {
		c.w.fatalf("%v gives back its room at %d, and its row is %+v", r.Key, off, *row)
	}
	delete(c.owned, r)
	row.owner = nil
	row.given = c.rows[row.hi][row.key] != row
	return !row.given
}

func (c *catalog) Freed(int) (off, bytes int64, ok bool) { return 0, 0, false }

func (c *catalog) Removed(r, by *Record) {
	if r.Gone() || by != nil && (by == r || by.Gone() || by.Hist != r.Hist || by.Key != r.Key) {
		c.w.fatalf("%v was removed by %+v", r.Key, by)
	}
	hi := c.w.index(r.Hist)
	if row := c.rows[hi][r.Key]; row != nil && by != nil {
		row.replaced = true
	}
	if by == nil && (r.Failed() == nil || r.Captured()) {
		c.drop(hi, r.Key)
	}
}

// drop begins to remove a key from the catalog.
func (c *catalog) drop(hi int, k model.Key) {
	d := &dropping{hi: hi, key: k}
	if row := c.rows[hi][k]; row != nil && !row.dropping {
		row.dropping, d.row = true, row
	}
	owes := d.row != nil
	for _, row := range c.unsure {
		if row.hi == hi && row.key == k && !row.dropping {
			row.dropping, owes = true, true
		}
	}
	if owes {
		c.drops = append(c.drops, d)
		c.w.e.ExpectReleases(c.w.now, 1)
	}
}

func (c *catalog) clear(hi int) {
	if c == nil {
		return
	}
	for _, row := range c.ordered() {
		if row.hi == hi {
			c.drop(hi, row.key)
		}
	}
}

// dropped makes a drop durable.
func (c *catalog) dropped(i int) {
	d := c.drops[i]
	c.drops = slices.Delete(c.drops, i, i+1)
	if d.row != nil && c.rows[d.hi][d.key] == d.row {
		delete(c.rows[d.hi], d.key)
		c.release(d.row)
	}
	c.sure()
	c.w.e.ExpectReleases(c.w.now, -1)
}

func (r *row) form() Form {
	if r.shape == nil {
		return Raw
	}
	return r.shape.Forms[r.tier]
}

// release gives back the room of a row that has left the catalog.
func (c *catalog) release(row *row) {
	if row.given {
		return
	}
	row.given = true
	if got := c.w.e.Release(c.w.now, row.tier, row.off, row.extent); got != (row.owner == nil) {
		c.w.fatalf("the room of %+v: released %v", *row, got)
	}
}

// numbered checks that a version has a later number than all rows of the catalog.
func (c *catalog) numbered(r *Record) {
	if c == nil {
		return
	}
	for _, row := range c.ordered() {
		if row.serial >= r.Written() {
			c.w.fatalf("version %d of %v begins behind %+v", r.Written(), r.Key, *row)
		}
	}
}

func (c *catalog) observed() {
	if c != nil {
		c.owing = len(c.drops) > 0
	}
}

// hopeless checks a failed wait: it must not fail for lack of room in a durable tier while drops are under way that may make room.
func (c *catalog) hopeless(x *waited) {
	var at *TierError
	if c == nil || !c.owing || len(c.drops) == 0 || !errors.Is(x.Err, ErrFull) || !errors.As(x.Err, &at) || !c.w.catalogued(at.Tier) {
		return
	}
	for _, r := range x.recs {
		if slices.ContainsFunc(c.w.of(r), func(o *Object) bool { return !c.w.e.tiers[at.Tier].fits(o) }) {
			return
		}
	}
	c.w.fatalf("a wait for tier %d fails with %v, while %d drops are under way%s", x.Tier, x.Err, len(c.drops), c.w.state())
}

// sure gives back the rooms of commits of unknown outcome: a later commit succeeded, and it does not include them.
func (c *catalog) sure() {
	for _, row := range c.unsure {
		c.release(row)
	}
	c.unsure = nil
}

// lands tells whether a transfer brings a version to a tier where it can be committed.
func (c *catalog) lands(x *Transfer) bool {
	return c != nil && (x.Kind == Flush || x.Kind == Spill) && c.w.catalogued(x.To) && !x.Rec.gone
}

func (c *catalog) rowOf(x *Transfer) *row {
	r := x.Rec
	made := &row{
		hi: c.w.index(r.Hist), tier: x.To, key: r.Key, serial: r.Written(), off: x.ToOff, size: r.Size, align: r.Align, stored: r.own.Bytes(x.To),
		top: r.Top(), content: contentOf(r),
	}
	if s := r.own.shape(); s != nil {
		own := s.Shape
		made.shape = &own
		for t := range c.w.e.tiers {
			if s.Forms[t] != Raw {
				own.Sizes[t] = c.w.exactly(&r.own, t)
			}
		}
		made.stored = own.Sizes[x.To]
	}
	made.extent = c.roomOf(x.To, made.stored)
	return made
}

// roomOf is the room of so many bytes in a tier.
func (c *catalog) roomOf(t int, bytes int64) int64 {
	g := max(c.w.cfg.Tiers[t].Grain, 1)
	return (max(bytes, 1) + g - 1) / g * g
}

// commit makes the version of a transfer durable. It returns a function that releases the rooms which that frees.
func (c *catalog) commit(x *Transfer) (release func()) {
	row := c.rowOf(x)
	old := c.rows[row.hi][row.key]
	row.owner, c.owned[x.Rec], c.rows[row.hi][row.key] = x.Rec, row, row
	return func() {
		if old != nil {
			c.release(old)
		}
		c.sure()
	}
}

// commitEarly makes a transfer's version durable before the engine hears of its end, except the version of a capture that is not visible before.
func (c *catalog) commitEarly(x *Transfer) {
	if !c.lands(x) || c.committed[x] || x.Kind == Spill && !x.Capture.early {
		return
	}
	c.w.write(x.To, x.ToOff, x.Obj, contentOf(x.Rec))
	c.committed[x] = true
	c.commit(x)()
}

// ends is called with every transfer before the engine's Done; the function that it returns is called after that.
func (c *catalog) ends(x *Transfer, err error) (after func()) {
	switch {
	case !c.lands(x) || c.committed[x]:
		return func() {}
	case err == nil:
		release := c.commit(x)
		if rapid.Bool().Draw(c.w.t, "release first") {
			release()
			return func() {}
		}
		return release
	case rapid.IntRange(0, 2).Draw(c.w.t, "unknown") == 0:
		c.failing[x.Rec] = c.rowOf(x)
		c.failing[x.Rec].extent = c.w.e.tiers[x.To].extent(x.Obj) // all of the room, whose end is not given back
		c.w.write(x.To, x.ToOff, x.Obj, c.failing[x.Rec].content)
		return func() {
			if len(c.failing) > 0 {
				c.w.fatalf("%v did not come where its commit may be, and nobody was asked to keep that", x.Rec.Key)
			}
		}
	}
	return func() {}
}

// ordered lists the rows in the order of writing.
func (c *catalog) ordered() (list []*row) {
	for _, rows := range c.rows {
		list = slices.AppendSeq(list, maps.Values(rows))
	}
	slices.SortFunc(list, func(a, b *row) int { return cmp.Or(cmp.Compare(a.serial, b.serial), cmp.Compare(a.off, b.off)) })
	return list
}

// ranges are the rooms of all rows in a tier, joined where they touch, in ascending order.
func (c *catalog) ranges(tier int) iter.Seq2[int64, int64] {
	list := slices.DeleteFunc(c.ordered(), func(row *row) bool { return row.tier != tier })
	slices.SortFunc(list, func(a, b *row) int { return cmp.Compare(a.off, b.off) })
	return func(yield func(from, end int64) bool) {
		for i := 0; i < len(list); {
			from, end := list[i].off, list[i].off+list[i].extent
			for i++; i < len(list) && list[i].off == end; i++ {
				end += list[i].extent
			}
			if !yield(from, end) {
				return
			}
		}
	}
}

// crash leaves the state of the disk. The end of the log, whose outcome is unknown, is there or not.
func (c *catalog) crash(tail bool) {
	if tail {
		for _, d := range c.drops {
			if d.row != nil && c.rows[d.hi][d.key] == d.row {
				delete(c.rows[d.hi], d.key)
			}
		}
		for _, row := range c.unsure {
			if !row.dropping { // it is later than all rows that are known to be there
				c.rows[row.hi][row.key] = row
			}
		}
	}
	for _, row := range c.ordered() {
		row.owner, row.dropping, row.replaced, row.given = nil, false, false, false
		row.extent = c.roomOf(row.tier, row.stored)
	}
	c.begin()
}

// restart discards the engine and every tier that is not durable.
func (w *world) restart(t *rapid.T) {
	c := w.cat
	c.crash(rapid.Bool().Draw(t, "tail"))
	w.forgotten, w.gone, w.woken = map[*Record]int{}, map[*Record]bool{}, map[any]bool{}
	w.captures, w.restores, w.pins, w.waits, w.flights, w.proofs, w.readings, w.born = nil, nil, nil, nil, nil, nil, nil, nil
	disks := w.bytes
	w.start()
	for i := range w.bytes {
		if w.catalogued(i) {
			w.bytes[i] = disks[i]
			w.e.Reserve(i, c.ranges(i))
		}
	}
	for _, row := range c.ordered() {
		w.e.Continue(row.serial)
		w.hists[row.hi].ContinueKeys(row.key.Number + 1)
	}
	for _, row := range c.ordered() {
		if k := w.e.AutoKey(w.hists[row.hi]); k.Number <= row.key.Number {
			w.fatalf("%v is given to a new checkpoint, %v was used", k, row.key)
		}
	}
	if rapid.IntRange(0, 2).Draw(t, "adopt") == 0 {
		for _, row := range c.ordered() {
			if r := w.hists[row.hi].Get(row.key); r == nil {
				w.fatalf("%+v is not found", *row)
			}
			w.hists[row.hi].Wrote(row.key)
		}
	}
	w.observe()
	w.check()
	if rapid.IntRange(0, 2).Draw(t, "read") == 0 {
		w.readAll()
	}
}

// readAll restores all checkpoints of the catalog.
func (w *world) readAll() {
	for _, row := range w.cat.ordered() {
		r, err := w.e.BeginRestore(w.now, w.hists[row.hi], row.key, RestoreOptions{Peek: true, Into: true})
		if err != nil || r.Rec != row.owner {
			w.fatalf("%+v cannot be restored: %+v, %v", *row, r, err)
		}
		g := &given{Restore: r, content: row.content, phase: r.Phase, into: true}
		r.Notify = r
		w.restores = append(w.restores, g)
		if w.quiet(); !g.handed || g.Err != nil {
			w.fatalf("%+v was not restored: %v", *row, g.Err)
		}
	}
}

func (w *world) retire(t *rapid.T) {
	c := w.cat
	tier := c.durable(t)
	from := rapid.Int64Range(0, w.e.Capacity(tier)).Draw(t, "from")
	end := from + rapid.Int64Range(0, w.e.Capacity(tier)/4).Draw(t, "bytes")
	free := int64(0)
	tab := w.e.tiers[tier].table
	for id := tab.First(); id != fragment.None; id = tab.Next(id) {
		f := tab.At(id)
		n := max(min(f.Offset+f.Size, end)-max(f.Offset, from), 0)
		if f.Class == fragment.Gap {
			free += n
		} else if f.Owner != nil && n > 0 {
			c.stayed[contentOf(f.Owner.home)] = true
		}
	}
	for _, row := range c.ordered() {
		if row.tier == tier && row.off < end && from < row.off+row.extent {
			c.stayed[row.content] = true
		}
	}
	c.retired[tier] = append(c.retired[tier], [2]int64{from, end})
	if got := w.e.Retire(tier, from, end); got != free {
		w.fatalf("of [%d, %d) %d bytes were free, %d were retired", from, end, free, got)
	}
}

// reinstate gives back a part of the retired ranges.
func (w *world) reinstate(t *rapid.T) {
	c := w.cat
	tier := c.durable(t)
	from := rapid.Int64Range(0, w.e.Capacity(tier)).Draw(t, "from")
	end := from + rapid.Int64Range(0, w.e.Capacity(tier)).Draw(t, "bytes")
	var left [][2]int64
	for _, r := range c.retired[tier] {
		left = append(left, [2]int64{r[0], min(r[1], from)}, [2]int64{max(r[0], end), r[1]})
	}
	c.retired[tier] = slices.DeleteFunc(left, func(r [2]int64) bool { return r[0] >= r[1] })
	idle := w.e.Idle(tier, from, end, func(from, end int64) {})
	if got := w.e.Reinstate(w.now, tier, from, end); got != idle {
		w.fatalf("of [%d, %d) %d bytes were idle, %d were given back", from, end, idle, got)
	}
}

// checkCatalog compares the durable tiers with the catalog, byte by byte.
func (w *world) checkCatalog() {
	c := w.cat
	if c == nil {
		return
	}
	wanted := make([][]bool, len(w.e.tiers)) // by tier: bytes that must be reserved
	for t, tr := range w.e.tiers {
		wanted[t] = make([]bool, tr.Capacity)
	}
	reserve := func(row *row) {
		for i := row.off; i < row.off+row.extent; i++ {
			if wanted[row.tier][i] {
				w.fatalf("byte %d is that of two rows, of them %+v%s", i, *row, w.state())
			}
			wanted[row.tier][i] = true
		}
	}
	for _, row := range c.ordered() {
		for i := row.off; i < row.off+row.stored; i++ {
			if w.bytes[row.tier][i] != in(row.form(), row.content) {
				w.fatalf("byte %d of %+v is %d", i, *row, w.bytes[row.tier][i])
			}
		}
		r := row.owner
		switch {
		case r == nil:
			reserve(row)
		case c.owned[r] != row || r.own.copies[row.tier] == fragment.None || w.e.row(&r.own, row.tier).Offset != row.off || r.Written() != row.serial:
			w.fatalf("%+v is not where its row says: %+v", *r, *row)
		case row.dropping && !r.gone:
			w.fatalf("%+v is being dropped, and its record lives", *row)
		}
	}
	for _, row := range c.unsure {
		reserve(row)
	}
	for _, r := range w.born {
		for t := range w.e.tiers {
			if row := c.owned[r]; !r.gone && w.catalogued(t) && r.own.home != nil && w.e.complete(&r.own, t) && (row == nil || row.tier < t || c.rows[row.hi][row.key] != row) {
				w.fatalf("%v lies in tier %d, but the catalog has no row of it there or below", r.Key, t)
			}
		}
	}
	if w.e.owed != len(c.drops) {
		w.fatalf("%d releases are owed, it says %d", len(c.drops), w.e.owed)
	}
	for t := range w.e.tiers {
		if w.catalogued(t) {
			w.checkReserved(t, wanted[t])
		}
	}
}

// checkReserved looks for rooms that are reserved without a row, or given away despite one.
func (w *world) checkReserved(t int, wanted []bool) {
	c, tr := w.cat, w.e.tiers[t]
	n, idle := 0, int64(0)
	for id := tr.table.First(); id != fragment.None; id = tr.table.Next(id) {
		f := tr.table.At(id)
		for i := f.Offset; i < f.Offset+f.Size; i++ {
			retired := slices.ContainsFunc(c.retired[t], func(r [2]int64) bool { return i >= r[0] && i < r[1] })
			switch reserved := f.Class != fragment.Gap && f.Owner == nil; {
			case wanted[i] && !reserved:
				w.fatalf("byte %d belongs to a row without a record, and is not reserved: %+v", i, *f)
			case reserved && !wanted[i] && !retired:
				w.fatalf("byte %d is reserved for nobody%s", i, w.state())
			case retired && f.Class == fragment.Gap, retired && f.Owner != nil && !c.stayed[contentOf(f.Owner.home)]:
				w.fatalf("byte %d is retired, and used again: %+v", i, *f)
			}
		}
		if f.Class == fragment.Gap || f.Owner != nil {
			continue
		}
		n++
		at, ok := tr.reserved.Get(f.Offset)
		if !ok {
			if at, ok = tr.idle.Get(f.Offset); ok {
				idle += f.Size
			}
		}
		if !ok || at != id || f.Class != fragment.Held || f.Pins != 0 || f.Transfers != 0 {
			w.fatalf("nobody finds what is reserved at %d: %d, not %d; %+v", f.Offset, at, id, *f)
		}
	}
	if found := tr.reserved.Len() + tr.idle.Len(); n != found || idle != tr.idleBytes || w.e.InUse(t) != tr.Capacity-idle {
		w.fatalf("%d fragments are reserved, %d are found; %d bytes are idle, it says %d", n, found, idle, tr.idleBytes)
	}
}

// emptied checks, when all checkpoints were dropped, that only retired bytes are left.
func (c *catalog) emptied() {
	c.sure()
	c.w.observe()
	c.w.check()
	if len(c.ordered()) > 0 || len(c.owned) > 0 || len(c.drops) > 0 {
		c.w.fatalf("everything was dropped, and %d rows are left, %d of them owned; %d drops", len(c.ordered()), len(c.owned), len(c.drops))
	}
}

// retiredBytes is how many bytes of tier t were retired.
func (c *catalog) retiredBytes(t int) (n int64) {
	for i := range c.w.e.Capacity(t) {
		if slices.ContainsFunc(c.retired[t], func(r [2]int64) bool { return i >= r[0] && i < r[1] }) {
			n++
		}
	}
	return n
}

// acts adds the actions on a catalog.
func (c *catalog) acts(all map[string]func(*rapid.T)) {
	if c == nil {
		return
	}
	all["drop is durable"] = func(t *rapid.T) {
		if len(c.drops) == 0 {
			t.Skip("none")
		}
		c.dropped(rapid.IntRange(0, len(c.drops)-1).Draw(t, "which"))
	}
	all["commit"] = func(t *rapid.T) {
		if len(c.w.flights) == 0 {
			t.Skip("none")
		}
		c.commitEarly(c.w.flights[rapid.IntRange(0, len(c.w.flights)-1).Draw(t, "which")])
	}
	all["land"] = func(t *rapid.T) {
		if !c.w.next(Down) {
			t.Skip("none")
		}
		n := len(c.w.flights) - 1
		if x := c.w.flights[n]; !c.lands(x) {
			return
		} else if rapid.Bool().Draw(t, "well") {
			c.commitEarly(x)
		} else {
			c.w.done(n, syscall.EIO)
		}
	}
	all["redo"] = func(t *rapid.T) {
		n := slices.IndexFunc(c.w.flights, func(x *Transfer) bool { return x.Kind == Flush && c.w.catalogued(x.To) && !c.committed[x] })
		if n < 0 {
			t.Skip("none")
		}
		x := c.w.flights[n]
		c.w.flights = slices.Delete(c.w.flights, n, n+1)
		c.w.write(x.To, x.ToOff, x.Obj, -1)
		c.w.e.Redo(c.w.now, x)
	}
	all["restart"] = func(t *rapid.T) {
		if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
			t.Skip("no")
		}
		c.w.restart(t)
	}
	all["retire"] = func(t *rapid.T) {
		if rapid.IntRange(0, 9).Draw(t, "really") > 0 {
			t.Skip("no")
		}
		c.w.retire(t)
	}
	all["reinstate"] = func(t *rapid.T) {
		if len(c.retired) == 0 {
			t.Skip("nothing is retired")
		}
		c.w.reinstate(t)
	}
}

// TestModelOfCatalog is TestModel for durable tiers that have checkpoints from the beginning.
func TestModelOfCatalog(t *testing.T) {
	for range rounds(10) {
		rapid.Check(t, modelOfCatalog)
	}
}

func modelOfCatalog(t *rapid.T) {
	cfg := someConfig(t)
	cfg.Tiers[len(cfg.Tiers)-1].Remote = true
	someDurable(t, &cfg)
	modelOfDurable(t, cfg)
}

// TestModelOfArchive is the same for a small disk over a larger archive.
func TestModelOfArchive(t *testing.T) {
	for range rounds(5) {
		rapid.Check(t, modelOfArchive)
	}
}

func modelOfArchive(t *rapid.T) {
	cfg := someConfig(t)
	cfg.Tiers = slices.DeleteFunc(cfg.Tiers, func(c TierConfig) bool { return !c.Private })
	cfg.Tiers = append(cfg.Tiers,
		TierConfig{Name: "host", Capacity: rapid.Int64Range(8, 30).Draw(t, "capacity"), WriteRate: 1e9, ReadRate: 2e9},
		TierConfig{Name: "disk", Capacity: rapid.Int64Range(8, 60).Draw(t, "capacity"), Remote: true, Durable: true, WriteRate: 1e9, ReadRate: 2e9},
		TierConfig{Name: "archive", Capacity: rapid.SampledFrom([]int64{40, 100, 1000}).Draw(t, "capacity"), Remote: true, Durable: true},
	)
	modelOfDurable(t, cfg)
}

func modelOfDurable(t *rapid.T, cfg Config) {
	if rapid.IntRange(0, 3).Draw(t, "eager") > 0 {
		cfg.Flush = Eager
	}
	w := plainWorld(t, cfg)
	w.cat = newCatalog(w)
	w.start()
	for range 6 {
		w.capture(t)
		w.quiet()
	}
	if rapid.Bool().Draw(t, "again") {
		w.restart(t)
	}
	t.Repeat(w.acts())
	w.observe()
	w.finish()
}
