package workers

import "velocpy/gocore/policy/engine"

// direction is a link in one direction.
type direction struct{ from, to int }

// occupied is how the transfers of a link share its time: each of n that run beside each other has an nth of it. So what the transfers cost adds up to the time in
// which the link had any, whatever the others do meanwhile.
type occupied struct {
	running int     // transfers, or groups of them that move together
	at      int64   // until when the time is shared out, ns
	each    float64 // ns that a transfer would have which has run all the time
}

func (o *occupied) until(now int64) {
	if o.running > 0 {
		o.each += float64(now-o.at) / float64(o.running)
	}
	o.at = now
}

// beginShare counts a transfer, or a group that moves together, on its link. The lock is held.
func (s *Workers) beginShare(w *worker, x *engine.Transfer) {
	on := direction{x.From, x.To}
	if s.occupied[on] == nil {
		s.occupied[on] = &occupied{}
	}
	w.link = s.occupied[on]
	w.link.until(s.Now())
	w.link.running++
	w.before = w.link.each
}

// endShare ends what the worker's latest beginShare has begun, and returns its share of the link's time, ns. The lock is held.
func (s *Workers) endShare(w *worker) int64 {
	w.link.until(s.Now())
	w.link.running--
	return int64(w.link.each - w.before)
}
