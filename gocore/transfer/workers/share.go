package workers

import "velocpy/gocore/policy/engine"

// direction is a link in one direction.
type direction struct{ from, to int }

// occupied is how the transfers of a link share its time.
type occupied struct {
	byBytes bool
	running int     // transfers, or groups of them that move together
	at      int64   // until when the time is shared out, ns
	each    float64 // ns that a transfer would have which has run all the time
	moved   int64   // bytes of the transfers that have ended
}

// use is a transfer, or a group of them, on its link.
type use struct {
	of     *occupied
	began  int64
	before float64 // what each was then
	moved  int64   // the same
}

func (o *occupied) until(now int64) {
	if o.running > 0 {
		o.each += float64(now-o.at) / float64(o.running)
	}
	o.at = now
}

// begin begins a use of the link.
func (o *occupied) begin(now int64) use {
	o.until(now)
	o.running++
	return use{o, now, o.each, o.moved}
}

// end ends it after so many bytes were moved, and returns its share of the link's time, ns.
//
// Each of n transfers that run beside each other has an nth of the time. So what the transfers cost adds up to the time in which the link had any, whatever the others
// do meanwhile. The copies of a device wait for each other in a queue: few bytes may be under way for as long as many, and have not used the link meanwhile. So there
// the time in which a transfer ran is divided by the bytes of those that ended in it.
func (u *use) end(now, bytes int64) int64 {
	o := u.of
	o.until(now)
	o.running--
	o.moved += bytes
	if moved := o.moved - u.moved; o.byBytes && moved > 0 {
		return int64(float64(now-u.began) * float64(bytes) / float64(moved))
	}
	return int64(o.each - u.before)
}

// beginShare counts a transfer, or a group that moves together, on its link. The lock is held.
func (s *Workers) beginShare(w *worker, x *engine.Transfer) {
	on := direction{x.From, x.To}
	if s.occupied[on] == nil {
		s.occupied[on] = &occupied{byBytes: w.pool.device != nil}
	}
	w.use = s.occupied[on].begin(s.Now())
}

// share is the part of all bytes that some have in a time, ns.
func share(ns, bytes, all int64) int64 {
	return int64(float64(ns) * float64(bytes) / float64(max(all, 1)))
}
