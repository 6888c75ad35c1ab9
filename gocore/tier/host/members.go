package host

import (
	"errors"

	"velocpy/gocore/base/vfs"
)

// members are the stores of the node, in whatever process, that pin their host tiers now: a file counts them. The cache's lock guards place.
type members struct {
	place *vfs.Place // of this store among them; nil: not known
}

// mostJoins bounds how often a store that is opened tries to be counted.
const mostJoins = 5

// join counts this store, at a file beside that of the turns.
func (m *members) join(t *turns) {
	for range mostJoins {
		place, err := vfs.LineUp(t.file + "-members")
		if m.place = place; !errors.Is(err, vfs.ErrTaken) || !t.pause() {
			return
		}
	}
}

// leave takes the store out again.
func (m *members) leave() {
	if m.place != nil {
		_ = m.place.Leave() // the lock is gone either way
		m.place = nil
	}
}

// processes is how many there are, this one included.
func (m *members) processes() int {
	if m.place == nil {
		return 1
	}
	others, err := m.place.Others()
	if err != nil {
		return 1
	}
	return int(others) + 1
}
