package durable

import (
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"velocpy/gocore/catalog"
	"velocpy/gocore/checksum"
	"velocpy/gocore/killpoint"
	"velocpy/gocore/plan"
	"velocpy/gocore/safego"
	"velocpy/gocore/segment"
	"velocpy/gocore/vfs"
)

// A batch of few checkpoints vouches for their bytes by their checksums: then both are synced at once, and a commit waits for the medium as long as one sync
// takes. A crash may leave the batch without the bytes. It is the last one then, was not acknowledged, and who opens the directory finds out by the checksums.

// Bounds of what a batch vouches for: so much is read when a directory is opened that was not closed.
const (
	mostVouched      = 4 << 20 // bytes of the space
	mostVouchedRows  = 64
	mostVouchedMetas = 16 << 10 // bytes of metas: the batch stays short
)

// mayVouch tells whether the batch of a group may vouch for its data.
func (d *Dir) mayVouch(group []*Change) bool {
	if !d.identity.vouches || d.unclear || len(group) > mostVouchedRows {
		return false
	}
	bytes, metas := int64(0), 0
	for _, c := range group {
		switch {
		case c.Err != nil || c.Clarify:
			return false
		case c.Put == nil:
			continue
		case c.Put.Sums == nil:
			return false
		}
		bytes += length(c.Put)
		metas += len(c.Put.Meta)
	}
	suspect := slices.ContainsFunc(d.touched(group), d.data.Suspect)
	return bytes > 0 && bytes <= mostVouched && metas <= mostVouchedMetas && !suspect && allStay(group)
}

// allStay tells whether all that a group puts is there when the group is durable. What another change of the group drops or replaces does not stay: its place
// is written to from then on, so that nobody can vouch for its bytes.
func allStay(group []*Change) bool {
	type at struct {
		history string
		key     plan.Key
	}
	puts := map[at]bool{}
	for _, c := range group {
		switch {
		case c.Clear:
			return false
		case c.Put != nil && puts[at{c.History, c.Put.Key}], c.Drop && puts[at{c.History, c.Key}]:
			return false
		case c.Put != nil:
			puts[at{c.History, c.Put.Key}] = true
		}
	}
	return true
}

// bringing is data on its way to the medium.
type bringing struct {
	failed map[int64]error // by segment
	whole  bool            // all segments were tried
	ended  chan struct{}
}

// sync syncs segments, and ends.
func (b *bringing) sync(d *Dir, segments []int64) {
	defer close(b.ended)
	b.failed = d.syncAll(segments)
	b.whole = true
	killpoint.Pass(killpoint.DataSynced)
}

// wait returns when the data is down, or why it is not.
func (b *bringing) wait() error {
	<-b.ended
	if !b.whole {
		return safego.ErrPoisoned // a panic has kept it from being tried
	}
	return errors.Join(slices.Collect(maps.Values(b.failed))...)
}

// writeVouching brings down the data of a group, and the batch that vouches for it. It returns the segments where the former failed, and fails before anything is
// said of the group. Another goroutine writes the batch: the data takes longer, so the medium gets to work on that at once.
func (d *Dir) writeVouching(group []*Change) (suspect []int64, err error) {
	data := &bringing{ended: make(chan struct{})}
	said := make(chan struct{})
	touched := d.touched(group)
	err = safego.ErrPoisoned // for a panic in the goroutine
	safego.Go("batch", func() {
		defer close(said)
		err = d.recordVouching(group, data)
	})
	data.sync(d, touched)
	<-said
	return slices.Sorted(maps.Keys(data.failed)), err
}

// recordVouching writes the batch of a group whose data is being brought down.
func (d *Dir) recordVouching(group []*Change, data *bringing) error {
	if err := d.owns(); err != nil {
		return err
	}
	d.encode(group)
	var batch []*Change
	for _, c := range group {
		if c.Err == nil {
			batch = append(batch, c)
		}
	}
	if len(batch) > 0 {
		records := d.batch(batch)
		d.appended(batch, d.appendWith(batch, func() error { return d.log.AppendBeside(records, data.wait) }))
		d.disown(batch)
		d.doubt.Reset(restAfter)
	}
	return nil
}

// disown lets go of what was written for a batch that failed, and makes certain, if that is possible now, that it does not count. Another process that has
// taken the directory over may have found the batch: then all of it stays where it is.
func (d *Dir) disown(batch []*Change) {
	if !d.unclear || d.owns() != nil {
		return
	}
	certain := d.log.Append(nil, nil) == nil
	for _, c := range batch {
		c.Free, c.Uncertain = c.Uncertain, c.Uncertain && !certain
	}
	d.unclear = !certain
}

// restAfter is how long a batch that vouches for its data stays the last one: what goes bad of the data later is damage, and told as such.
const restAfter = time.Second

// rest has the committing goroutine end the doubt about the last batch.
func (d *Dir) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = true
	d.work.Signal()
}

// endDoubt writes a batch that says nothing behind one that vouches. Where that fails, the doubt stays: it is about nothing that was acknowledged.
func (d *Dir) endDoubt() {
	if !d.unclear && d.owns() == nil {
		_ = d.log.Append(nil, nil)
	}
}

// vouched tells whether the bytes are there that the records of a batch vouch for. What cannot be read may be: it counts, as damage. The places of the others
// are kept for bringDown.
func (c *contents) vouched(records [][]byte) (_ bool, err error) {
	c.vouching = nil
	rows, err := c.state.Puts(records)
	if err != nil {
		return true, nil // who applies them tells what is wrong
	}
	bytes := int64(0)
	for i := range rows {
		if bytes += length(&rows[i]); bytes > mostVouched || rows[i].Sums == nil {
			return false, nil // no writer does that
		}
	}
	data, err := c.few(true)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	for i := range rows {
		r, ok := c.identity.place(rows[i].Extents)
		if !ok {
			continue // likewise
		}
		data.Grow(r.end)
		p := make([]byte, r.end-r.from)
		err := data.Read(r.from, p)
		switch {
		case vfs.Unreadable(err), errors.Is(err, segment.ErrForeign):
			continue
		case errors.Is(err, segment.ErrUnwritten), errors.Is(err, io.ErrUnexpectedEOF), err == nil && !intact(&rows[i], p):
			return false, nil
		case err != nil:
			return false, err
		}
		c.vouching = append(c.vouching, r)
	}
	return true, nil
}

// intact tells whether the bytes of a slot are what the checksums of a row say.
func intact(row *catalog.Row, slot []byte) bool {
	for i, span := range row.Layout.Spans {
		if checksum.Sum(slot[span.Offset:span.Offset+span.Bytes]) != row.Sums[i] {
			return false
		}
	}
	return true
}

// bringDown brings down what the last batch vouches for, if the log was not closed behind it: its writer may have died before a sync, or have met one that
// failed, so that the system shows what is only in memory. So it is written again, which changes nothing.
func (c *contents) bringDown() (err error) {
	if !c.log.Vouched || len(c.vouching) == 0 {
		return nil
	}
	data, err := c.few(false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	touched := map[int64]bool{}
	for _, r := range c.vouching {
		data.Grow(r.end)
		p := make([]byte, r.end-r.from)
		if err := data.Read(r.from, p); vfs.Unreadable(err) || errors.Is(err, segment.ErrForeign) {
			continue // it cannot be brought down, and is damage by now
		} else if err != nil {
			return err
		}
		if err := data.Write(r.from, p); err != nil {
			return err
		}
		first, end := data.Segments(r.from, r.end-r.from)
		for ; first < end; first++ {
			touched[first] = true
		}
	}
	for number := range touched {
		if err := data.Renew(number); err != nil {
			return err
		}
	}
	return nil
}
