package engine

import "slices"

// Pin keeps copies of a checkpoint where they are, for a reader that needs their bytes for another checkpoint. It waits for nothing, and ends by itself as a copy
// out does: soon.
type Pin struct {
	Offsets []int64 // of the copies, in the order of the tiers
	r       Restore // pins them; no caller waits for it
}

// Pin pins the copies of rec in some tiers, until Unpin. It is nil if one of the tiers has not all bytes, or has bytes that may turn out to be wrong; if rec is gone,
// or was lent to a caller that may write to its bytes; or if it consists of several objects.
func (rs *restores) Pin(now int64, rec *Record, tiers ...int) *Pin {
	o := &rec.own
	if rec.gone || rec.hidden || !rec.isWhole() || slices.ContainsFunc(tiers, func(t int) bool { return !rs.copies.complete(o, t) || o.loadRuns&(1<<t) != 0 }) {
		return nil
	}
	p := &Pin{r: Restore{Rec: rec, Phase: Ready, quiet: true, copies: true}}
	rs.copying++
	o.copying++
	for _, t := range tiers {
		rs.hold(now, &p.r, o, t)
		p.Offsets = append(p.Offsets, rs.copies.row(o, t).Offset)
	}
	return p
}

// Unpin ends the use of a pin.
func (rs *restores) Unpin(now int64, p *Pin) { rs.EndRestore(now, &p.r) }
