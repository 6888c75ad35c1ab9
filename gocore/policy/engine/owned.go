package engine

// An object may belong to no checkpoint: a buffer, an index, a tree of digests. It lies in the same tiers as all others, under the same budgets, and is
// evicted and flushed in the same order, as an object that no restore order expects. Its owner is a record that no history lists. It keeps the object until
// Disown, or longer if checkpoints refer to it by then.

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
