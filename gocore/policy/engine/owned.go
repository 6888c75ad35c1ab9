package engine

import "velocpy/gocore/model"

// An object may belong to no checkpoint: a buffer, an index, a tree of digests. It lies in the same tiers as all others, under the same budgets, and is
// evicted and flushed in the same order, as an object that no restore order expects. Its owner is a record that no history lists. It keeps the object until
// Disown, or longer if checkpoints refer to it by then.

// BeginObject begins an object without a checkpoint, as BeginCapture does for a checkpoint: the caller writes its bytes when the capture is Ready. Until
// then, and until EndCapture, it stays where it is, so an owner that needs a buffer for a while never ends the capture, or ends it with false.
func (cs *captures) BeginObject(now int64, size, align int64, o CaptureOptions) (*Capture, error) {
	return cs.BeginCapture(now, cs.checkpoints.anonymous(), model.NumberKey(cs.count), size, align, nil, o)
}

// anonymous is the history of the owners, which Histories does not list. The first call makes it.
func (ck *checkpoints) anonymous() *History {
	if ck.owners == nil {
		ck.owners = newHistory("", 0, ck.cfg.Guess)
		ck.owners.anonymous = true
	}
	return ck.owners
}

// BeginUse gives the owner its object, as BeginRestore gives a checkpoint. EndRestore ends the use.
func (rs *restores) BeginUse(now int64, owner *Record, o RestoreOptions) (*Restore, error) {
	if owner.gone {
		return nil, ErrDropped
	}
	o.Last, o.Peek = false, true
	r := &Restore{Rec: owner, options: o, quiet: true, Hit: rs.checkpoints.Complete(owner, owner.Top())}
	rs.checkpoints.touch(owner)
	return rs.begin(now, r)
}

// Disown gives up an object without a checkpoint. It does nothing to one that is given up already.
func (ck *checkpoints) Disown(now int64, owner *Record) {
	if owner.gone || !owner.Hist.anonymous {
		return
	}
	ck.discard(now, owner)
	ck.makeProgress(now)
}
