package workers

import (
	"cmp"
	"fmt"
	"slices"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/path"
)

// copies are the other checkpoints of the lineage of a transfer's checkpoint that are raw in the host tier.
type copies struct {
	s *Workers
	x *engine.Transfer
}

// copies returns what memory has for a transfer; nil if it decodes nothing, or if there is no host tier.
func (w *worker) copies(x *engine.Transfer) path.Copies {
	if x.Stage != engine.Decoding || w.s.Host == nil {
		return nil
	}
	return &copies{w.s, x}
}

// Each implements path.Copies. The nearest checkpoints have most in common.
func (c *copies) Each(needed func(*model.Difference) bool, use func(*path.Copy) bool) {
	for _, rec := range c.list() {
		found, pin := c.pin(rec, needed)
		if pin != nil && !c.lend(found, pin, use) {
			return
		}
	}
}

// list returns the checkpoints, the nearest ones first.
func (c *copies) list() (all []*engine.Record) {
	c.s.Lock()
	defer c.s.Unlock()
	of := c.x.Rec.Version.Difference
	numbers := map[*engine.Record]uint32{}
	c.x.Rec.Hist.Each(func(r *engine.Record) {
		if d := r.Version.Difference; r != c.x.Rec && d != nil && d.Lineage == of.Lineage && c.raw(r) {
			all, numbers[r] = append(all, r), d.Number
		}
	})
	slices.SortFunc(all, func(a, b *engine.Record) int {
		n, m := numbers[a], numbers[b]
		return cmp.Or(cmp.Compare(distance(n, of.Number), distance(m, of.Number)), cmp.Compare(n, m))
	})
	return all
}

func distance(a, b uint32) uint32 { return max(a, b) - min(a, b) }

// raw tells whether the host tier has the plain bytes. The lock is held.
func (c *copies) raw(r *engine.Record) bool {
	host := c.s.HostTier()
	return c.s.Engine.Complete(r, host) && c.s.Engine.Form(r, host) == engine.Raw
}

// pin pins a checkpoint, if it is still there and needed.
func (c *copies) pin(r *engine.Record, needed func(*model.Difference) bool) (*path.Copy, *engine.Pin) {
	c.s.Lock()
	defer c.s.Leave()
	d := r.Version.Difference
	if c.s.Closing || d == nil || !c.raw(r) || !needed(d) {
		return nil, nil
	}
	pin := c.s.Engine.Pin(c.s.Now(), r, c.s.HostTier(), c.x.From)
	if pin == nil {
		return nil, nil
	}
	return &path.Copy{Version: r.Version, Difference: d, At: pin.Offsets[1], Plain: c.s.Host.Bytes(pin.Offsets[0], r.Size)}, pin
}

// lend lets a checkpoint be used while it is pinned.
func (c *copies) lend(found *path.Copy, pin *engine.Pin, use func(*path.Copy) bool) (more bool) {
	defer func() {
		c.s.Lock()
		defer c.s.Leave()
		c.s.Engine.Unpin(c.s.Now(), pin)
	}()
	return use(found)
}

// Damaged implements path.Copies.
func (c *copies) Damaged(off int64) {
	c.s.Lock()
	defer c.s.Unlock()
	c.s.Disk.Damaged(off)
}

// warnOfDamage warns that a checkpoint was restored with the help of others, which will not be in memory for ever.
func warnOfDamage(x *engine.Transfer, objects []uint32) {
	logring.Add(logring.Warning, fmt.Sprintf("history %.80q, checkpoint %s: bytes that it needs are damaged on the disk, in the objects with the numbers %d of its "+
		"lineage; they were taken from other checkpoints in memory. Write the checkpoint again; `velocpy check --read-data` names all that need these objects",
		x.Rec.Hist.Name, x.Rec.Key, objects))
}
