package plan

import (
	"slices"

	"velocpy/gocore/model"
)

// window is the computed part of a guess: the next restores, up to a limit, as a queue.
type window struct {
	queue
	limit int
	stale bool // must be rebuilt before it is used
	ended bool // the guess ends before the limit

	// The simulated application at the window's end.
	sim  sweep
	due  [constantLimit]constant
	dues int
	tick int64

	coming []model.Key // buffer of refresh
}

// refresh updates the window and adds the keys that it does not expect any more to lost. If the window only grows, numbers stay as they are. O(1) if
// only the restore of its head happened, O(limit) otherwise.
func (g *guess) refresh(from int64, lost *losses) {
	w := &g.ahead
	if !w.stale {
		return
	}
	w.stale = false
	w.start(g)
	coming := w.coming[:0]
	for len(coming) < w.limit {
		k, ok := w.step(g, func(k model.Key) bool { return slices.Contains(coming, k) })
		if !ok {
			w.ended = true
			break
		}
		coming = append(coming, k)
	}
	if n := w.size(); n == 0 || !w.begins(coming) {
		before := w.expected()
		w.reset(from)
		w.append(coming)
		for _, k := range before {
			if _, ok := w.find(k); !ok {
				lost.add(k)
			}
		}
	} else {
		w.append(coming[n:])
	}
	clear(coming)
	w.coming = coming
}

// begins tells whether keys begin with the restores of the window.
func (w *window) begins(keys []model.Key) bool {
	i := 0
	return w.walk(w.head, func(_ int64, k model.Key, _ bool) bool {
		i++
		return i <= len(keys) && keys[i-1] == k
	})
}

func (w *window) append(keys []model.Key) {
	for _, k := range keys {
		w.push(k, false)
	}
}

// expected lists the keys in the window.
func (w *window) expected() []model.Key {
	if w.size() == 0 {
		return nil
	}
	keys := make([]model.Key, 0, w.size())
	w.walk(w.head, func(_ int64, k model.Key, _ bool) bool {
		keys = append(keys, k)
		return true
	})
	return keys
}

// start begins the simulation at the application's present state.
func (w *window) start(g *guess) {
	w.sim, w.tick, w.dues, w.ended = *g.anchor(), g.constants.tick, 0, false
	for _, c := range g.constants.list {
		if c.times >= constantProof {
			w.due[w.dues] = c
			w.dues++
		}
	}
}

// fill appends the restores after the window, up to the limit.
func (w *window) fill(g *guess) {
	for w.size() < w.limit && !w.ended {
		if k, ok := w.step(g, w.has); ok {
			w.push(k, false)
		} else {
			w.ended = true
		}
	}
}

func (w *window) has(k model.Key) bool {
	_, ok := w.find(k)
	return ok
}

// step simulates one restore: a constant that is due, or the next of the sweep. After the sweep's end, each constant comes once more unless it is
// expected already.
func (w *window) step(g *guess, expected func(model.Key) bool) (model.Key, bool) {
	for i := range w.dues {
		if c := &w.due[i]; c.seen+c.period <= w.tick && g.live.has(c.key) {
			c.seen = w.tick
			w.tick++
			return c.key, true
		}
	}
	if g.trusted != undecided {
		if k, ok := w.sim.step(g.trusted, &g.live, &g.trail); ok {
			w.tick++
			return k, true
		}
	}
	for _, c := range w.due[:w.dues] {
		if !expected(c.key) && g.live.has(c.key) {
			return c.key, true
		}
	}
	return model.Key{}, false
}

// met advances the window after the restore of k was observed: by one if k was its head and nothing else changed, not at all after an interruption.
func (g *guess) met(k model.Key) {
	w := &g.ahead
	if g.holding && !w.stale {
		return
	}
	if w.stale || w.size() == 0 || w.key(w.head) != k {
		w.stale = true
		return
	}
	w.take(w.head)
	w.ended = w.ended && g.trusted != repeated // the trail has grown by this restore
	w.fill(g)
}
