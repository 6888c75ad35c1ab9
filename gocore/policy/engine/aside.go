package engine

// Needed tells whether something waits for the end of a flush that was put aside: a claim for room in the tier that it leaves, a smaller budget of that tier, or a
// caller for its checkpoint in a lower tier. It is also true where the checkpoint is gone, whose room is free once the flush has ended.
func (e *Engine) Needed(x *Transfer) bool {
	return x.Obj.gone || x.Obj.wants>>x.To != 0 || e.tiers[x.From].claims.len() > 0 || e.Draining(x.From)
}

// FlushRate is the rate (bytes/s) of the link below a tier, measured or assumed.
func (e *Engine) FlushRate(t int) float64 { return e.links[t].down.Rate() }
