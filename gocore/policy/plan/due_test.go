package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"velocpy/gocore/model"
)

// dueModel is the list as a slice: slow and simple.
type dueModel struct {
	due  []dueRestore
	next int64
}

func (m *dueModel) append(k model.Key, last bool) {
	m.due = append(m.due, dueRestore{m.next, k, last})
	m.next++
}

func (m *dueModel) take() (dueRestore, bool) {
	if len(m.due) == 0 {
		return dueRestore{}, false
	}
	first := m.due[0]
	m.due = m.due[1:]
	return first, true
}

func (m *dueModel) giveBack(r dueRestore) {
	i := 0
	for i < len(m.due) && m.due[i].seq < r.seq {
		i++
	}
	m.due = slices.Insert(slices.Clone(m.due), i, r)
}

// TestDueTakeAndReturn takes and returns restores like several loops whose restores fail at times. No restore is lost or comes twice, and each comes
// in the plan's order among those that are due.
func TestDueTakeAndReturn(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d, m := NewDue(), &dueModel{}
		var taken []dueRestore
		for range 400 {
			switch rng.IntN(10) {
			case 0, 1, 2, 3:
				k := model.Key{Number: rng.Int64N(20)}
				if rng.IntN(4) == 0 {
					k = model.Key{Text: string(rune('a' + rng.IntN(5))), IsText: true}
				}
				op := []Op{Restore, Last, Drop, Advance}[rng.IntN(4)]
				d.Append(Hint{Op: op, Key: k, Steps: 1})
				if op == Restore || op == Last {
					m.append(k, op == Last)
				}
			case 4, 5, 6:
				k, last, seq, ok := d.Take()
				want, some := m.take()
				if ok != some || ok && (k != want.key || last != want.last || seq != want.seq) {
					t.Fatalf("seed %d: took %v %v %d %v, not %v %v", seed, k, last, seq, ok, want, some)
				}
				if ok {
					taken = append(taken, want)
				}
			case 7, 8:
				if len(taken) > 0 {
					i := rng.IntN(len(taken))
					r := taken[i]
					taken = slices.Delete(taken, i, i+1)
					d.Return(r.seq, r.key, r.last)
					d.Return(r.seq, r.key, r.last) // a second Return does nothing
					m.giveBack(r)
				}
			case 9:
				if rng.IntN(8) == 0 {
					d.Clear()
					m.due = nil
					for _, r := range taken { // withdrawn with the rest
						d.Return(r.seq, r.key, r.last)
					}
					taken = nil
				}
			}
			d.Return(d.queue.tail+rng.Int64N(5), model.Key{}, false) // never taken
			d.Return(-1-rng.Int64N(5), model.Key{}, false)
			if d.Len() != len(m.due) {
				t.Fatalf("seed %d: %d are due, not %d", seed, d.Len(), len(m.due))
			}
		}
	}
}

// TestDueMet restores by key. A restore that was overtaken a few times stays due, one that was overtaken too often does not.
func TestDueMet(t *testing.T) {
	d := NewDue()
	for i := range int64(40) {
		d.Append(Hint{Op: Restore, Key: model.Key{Number: i}})
	}
	for i := int64(1); i < 9; i++ { // as often as a restore may be overtaken
		d.Met(model.Key{Number: i})
	}
	d.Met(model.Key{Number: 100}) // no hint announced it
	k, _, seq, _ := d.Take()
	if k.Number != 0 {
		t.Fatalf("%v came first, not 0", k)
	}
	d.Return(seq, k, false)
	d.Met(k) // restored by key although it was returned
	if k, _, _, _ = d.Take(); k.Number != 9 {
		t.Fatalf("%v came next, not 9", k)
	}
	for i := int64(11); i < 20; i++ { // once more than 10 may be overtaken
		d.Met(model.Key{Number: i})
	}
	if k, _, _, _ = d.Take(); k.Number != 20 {
		t.Fatalf("%v came next, not 20", k)
	}
}
