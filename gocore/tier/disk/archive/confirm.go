package archive

import (
	"errors"
	"fmt"
	"iter"
)

// mostTries is how often a key is copied whose bytes are not those of its checksums.
const mostTries = 2

// confirmed returns the keys of a batch whose parts have been copied as the ranks' stores had them when the push began.
//
// Checksums prove that. Without them the catalog does: the writer of a store reuses the room of a checkpoint only after the catalog has recorded that the
// checkpoint is gone, so bytes that were read while the catalog listed the version are those of the version.
func (p *Push) confirmed(batch []*task) (sound []*task, err error) {
	if err := p.verify(batch); err != nil {
		return nil, err
	}
	for _, t := range batch {
		if t.proven() {
			sound = append(sound, t)
			continue
		}
		current, err := p.current(t)
		switch {
		case err != nil:
			return nil, err
		case !current:
			p.done.Changed++
			p.omit(t, Changed)
			p.forget(t)
		case t.wrong():
			p.forget(t)
			if t.tries++; t.tries < mostTries { // an object of an earlier push may be damaged: now it is copied again
				p.queue = append(p.queue, t)
				continue
			}
			p.omit(t, Damaged)
			p.damaged(t)
		default:
			sound = append(sound, t)
		}
	}
	return sound, nil
}

// verify compares what has been copied with the checksums of the rows: plain bytes as they were read, and others in the archive, where they are decoded.
func (p *Push) verify(batch []*task) error {
	var all []*part
	for _, t := range batch {
		for _, x := range t.parts {
			switch {
			case x.known || x.err != nil || x.wrong || x.checked || x.gone:
			case x.seen != nil:
				x.wrong = !x.seen.Sound()
			default:
				all = append(all, x)
			}
		}
	}
	return p.o.workers(len(all), func(mine iter.Seq[int]) (err error) {
		v, err := p.to.Verifier()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, v.Close()) }()
		for i := range mine {
			x := all[i]
			if x.wrong = !v.Sound(&x.row, x.off); !x.wrong && x.row.Sums == nil && !x.reported {
				x.err = x.of.from.NamesStore(x.rooms)
			}
		}
		return nil
	})
}

// current tells whether the stores of the ranks still have the versions of a key's parts. An error of reading is one of the rank if they do.
func (p *Push) current(t *task) (bool, error) {
	var errs []error
	for _, x := range t.parts {
		same, err := !x.gone, error(nil)
		if !x.reported {
			same, err = x.of.from.Current(t.history, t.key, x.row.Serial)
		}
		if err == nil && !same {
			return false, nil
		}
		if err = errors.Join(err, x.err); err != nil {
			errs = append(errs, fmt.Errorf("rank %d, checkpoint %s of history %.80q: %w", x.of.number, t.key, t.history, err))
		}
	}
	return true, errors.Join(errs...)
}

// proven tells whether checksums say that all parts of a key are there.
func (t *task) proven() bool {
	for _, x := range t.parts {
		if !x.known && (x.err != nil || x.wrong || x.gone || x.row.Sums == nil) {
			return false
		}
	}
	return true
}

func (t *task) wrong() bool {
	for _, x := range t.parts {
		if x.wrong {
			return true
		}
	}
	return false
}

// forget gives up the objects of a key that is not committed: the next part that needs one copies it again.
func (p *Push) forget(t *task) {
	for _, x := range t.parts {
		for _, r := range x.rooms {
			delete(p.rooms, object{x.of.number, r.Object})
		}
	}
}

func (p *Push) damaged(t *task) {
	for _, x := range t.parts {
		if x.wrong {
			p.done.Damaged = append(p.done.Damaged, Damage{x.of.number, t.history, t.key})
		}
	}
}
