package durable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"velocpy/gocore/base/vfs"
)

// damages has one entry per image of a moment: the probability with which each unsynced block, name and size is kept; less than 0: a random one.
var damages = []float64{0, 0.5, 1, -1, 0.5, -1, 0.9, 0.1, -1, 0.5}

// outage takes images of a disk at every call of a player, and verifies each of them.
type outage struct {
	mu     sync.Mutex // concurrent calls take images one at a time
	p      *player
	r      *rand.Rand
	every  int // one of so many calls is verified; each seed takes others
	calls  int
	images *atomic.Int64
	wrong  error
}

// at verifies the moment before a call.
func (o *outage) at(disk *vfs.Mem) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls++; o.wrong != nil || o.calls%o.every != 0 {
		return
	}
	for i, keep := range damages {
		if keep < 0 {
			keep = o.r.Float64()
		}
		o.p.mu.Lock() // keeps the allowed contents constant while the image is taken
		left, allowed := disk.Crash(o.r, keep), o.p.allowed()
		o.p.mu.Unlock()
		if err := o.look(left, allowed, i == 3 && o.calls%15 == 0, 2); err != nil {
			o.wrong = fmt.Errorf("call %d, image %d, keeping %.2f: %w", o.calls, i, keep, err)
			return
		}
	}
}

// look recovers an image. With compound, the power fails again at every call of the recovery, and again in the recovery from that, up to levels deep: the
// image alone determines the recovered content, however often recovery is interrupted.
func (o *outage) look(left *vfs.Mem, allowed []reference, compound bool, levels int) error {
	o.images.Add(1)
	if !compound {
		var bare *vfs.Mem
		if o.images.Load()%32 == 0 && o.p.made == madeWhole {
			bare = left.Crash(o.r, 1)
		}
		got, err := recovered(o.p.options(left), allowed)
		if err == nil && bare != nil {
			err = rebuilt(o.p.options(bare), got)
		}
		return err
	}
	was := left.Crash(o.r, 1)
	got, err := recovered(o.p.options(was), allowed)
	if err != nil {
		return err
	}
	var again error
	var mu sync.Mutex
	calls := 0
	_, err = recovered(o.p.options(&stepped{left, func(step) error {
		mu.Lock()
		defer mu.Unlock()
		calls++
		for _, keep := range []float64{0, 0.5} {
			if again == nil {
				if again = o.look(left.Crash(o.r, keep), []reference{got}, levels > 1 && calls == 13 && keep > 0, levels-1); again != nil {
					again = fmt.Errorf("when the power goes again at call %d of the recovery: %w", calls, again)
				}
			}
		}
		return nil
	}}), []reference{got})
	return errors.Join(again, err)
}

// rebuilt verifies that the data files of an image alone give all checkpoints of its catalog. They may give unacknowledged versions and dropped ones too.
func rebuilt(o Options, want reference) error {
	if len(want.rows) == 0 {
		return nil
	}
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, "catalog-") {
			if err := o.FS.Remove(o.path(name)); err != nil {
				return err
			}
		}
	}
	if _, err := Repair(o, Mending{Rebuild: true}); err != nil {
		return fmt.Errorf("without a catalog: %w", err)
	}
	d, err := Open(o)
	if err != nil {
		return fmt.Errorf("with a catalog that was rebuilt: %w", err)
	}
	got := shown(d.State())
	for at, v := range want.rows {
		if got.rows[at].serial < v.serial {
			err = errors.Join(err, fmt.Errorf("rebuilt, version %d of %v is %d", v.serial, at, got.rows[at].serial))
		}
	}
	return errors.Join(err, readable(d.contents, d.Space().Read, anyRow), d.Close())
}

// The power may fail at any moment, and again during recovery. Acknowledged checkpoints are there with their bytes, unacknowledged ones are complete or
// absent, and two reads see the same.
func TestPowerLoss(t *testing.T) {
	var images atomic.Int64
	watch(t, &images)
	every, seeds := 2, []uint64{0, 1}
	if tenth() {
		every, seeds = 5, []uint64{uint64(turn()) % 2}
	}
	if underRace { // an image takes ten times as long; the run without the race detector proves more of them
		every = 20
	}
	t.Run("in", func(t *testing.T) {
		for i, s := range scenarios {
			for _, seed := range seeds {
				t.Run(fmt.Sprint(s.name, " ", seed), func(t *testing.T) {
					t.Parallel()
					o := &outage{r: rand.New(rand.NewPCG(seed, 11)), every: every, calls: int(seed) + int(turn()/2), images: &images}
					o.p = newPlayer(seed, func(disk *vfs.Mem) vfs.FS {
						return &stepped{vfs.NewFaulty(disk, o.p.trouble), func(step) error {
							o.at(disk)
							return nil
						}}
					})
					switch o.p.made, o.p.prompt = madeWhole, false; (i + int(seed)) % 3 {
					case 1:
						o.p.made = []made{madeIndexed, madeHeads, madeBare}[i/3%3]
					case 2:
						o.p.prompt = true
					}
					s.play(o.p, true)
					o.p.close()
					if err := errors.Join(o.wrong, o.p.wrong); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				})
			}
		}
	})
	t.Logf("%d images", images.Load())
	if want := int64(50_000); someAlone() {
		return
	} else if !tenth() && images.Load() < want || images.Load() < want/20 {
		t.Errorf("only %d images", images.Load())
	}
}
