package engine

// Needed tells whether something waits for the end of a flush that was put aside: a claim or another flush for room in one of its tiers, a smaller budget of one,
// or a caller for its checkpoint in a lower tier. It is also true where the checkpoint is gone, whose room is free once the flush has ended.
func (ts *transfers) Needed(x *Transfer) bool {
	if x.Obj.gone || x.Obj.wants>>x.To != 0 {
		return true
	}
	for _, t := range []int{x.From, x.To} {
		if ts.rooms.awaitsRoom(t) || ts.tiers[t].behind(ts.copies.row(x.Obj, t)) {
			return true
		}
	}
	return false
}
