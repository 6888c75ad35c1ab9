package plan

import "velocpy/gocore/model"

// written is the list of a history's live keys in the order of their last writing, linked through the rows of the history's keys. All operations are
// O(1).
type written struct {
	keys   *Keys
	oldest Ref
	newest Ref
	n      int
}

func newWritten(keys *Keys) written { return written{keys: keys} }

func (w *written) find(k model.Key) Ref {
	if r := w.keys.Find(k); r != Nobody && w.keys.row(r).live {
		return r
	}
	return Nobody
}

// write moves k to the newest end and reports whether it was unknown before.
func (w *written) write(k model.Key) (fresh bool) {
	r := w.find(k)
	switch {
	case r == Nobody:
		fresh = true
		r = w.keys.Hold(k)
		w.n++
	case r == w.newest:
		return false
	default:
		w.unlink(r)
	}
	x := w.keys.row(r)
	x.prev, x.next, x.live = w.newest, Nobody, true
	if w.newest != Nobody {
		w.keys.row(w.newest).next = r
	} else {
		w.oldest = r
	}
	w.newest = r
	return fresh
}

// drop removes k.
func (w *written) drop(k model.Key) {
	r := w.find(k)
	if r == Nobody {
		return
	}
	w.unlink(r)
	w.keys.row(r).live = false
	w.n--
	w.keys.Release(r)
}

func (w *written) unlink(r Ref) {
	x := w.keys.row(r)
	if x.prev != Nobody {
		w.keys.row(x.prev).next = x.next
	} else {
		w.oldest = x.next
	}
	if x.next != Nobody {
		w.keys.row(x.next).prev = x.prev
	} else {
		w.newest = x.prev
	}
}

// beside returns the key written just before k (way < 0) or just after it.
func (w *written) beside(k model.Key, way int) (model.Key, bool) {
	r := w.find(k)
	if r == Nobody {
		return model.Key{}, false
	}
	if way < 0 {
		r = w.keys.row(r).prev
	} else {
		r = w.keys.row(r).next
	}
	return w.named(r)
}

func (w *written) named(r Ref) (model.Key, bool) {
	if r == Nobody {
		return model.Key{}, false
	}
	return w.keys.Key(r), true
}

func (w *written) has(k model.Key) bool { return w.find(k) != Nobody }
