package devicememory

import (
	"errors"
	"sync"

	"velocpy/gocore/device"
)

// Runner puts work into a lane and waits for it, also for what had been queued before an error.
type Runner func(work func(device.Lane) error) error

// ownLane is the lane of a memory for work that a caller waits for: reads of leases, copies to host memory.
type ownLane struct {
	device device.Device
	mu     sync.Mutex // held while work is put into it
	lane   device.Lane
	beside device.Lane // the second lane of RunInTwo; nil: it was not needed yet
}

// RunSync is the Runner of the memory's own lane.
func (o *ownLane) RunSync(work func(device.Lane) error) error {
	o.mu.Lock()
	x, err := EventBehind(o.lane, work(o.lane))
	o.mu.Unlock()
	return Explain(finish(x, err))
}

// RunInTwo is RunSync with two lanes, whose work runs beside each other. It calls meanwhile while they work, also behind an error, and waits for both lanes then. If the device has no
// second lane, both are the same.
func (o *ownLane) RunInTwo(work func(first, second device.Lane) error, meanwhile func() error) error {
	o.mu.Lock()
	second := o.second()
	x, err := EventBehind(o.lane, work(o.lane, second))
	y, failed := EventBehind(second, nil)
	o.mu.Unlock()
	failed = errors.Join(failed, meanwhile())
	return Explain(errors.Join(finish(x, err), finish(y, failed)))
}

// second returns the second lane. mu is held.
func (o *ownLane) second() device.Lane {
	if o.beside == nil {
		made, err := o.device.Lane(device.Waited)
		if err != nil { // one lane does the same work, one piece behind the other
			return o.lane
		}
		o.beside = made
	}
	return o.beside
}

// closeLanes closes what there is of the lanes.
func (o *ownLane) closeLanes() (err error) {
	for _, l := range []device.Lane{o.lane, o.beside} {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}

// InOwnLane runs f while no other goroutine puts work into the memory's own lane.
func (o *ownLane) InOwnLane(f func(lane device.Lane) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return f(o.lane)
}

// InOwnLaneBehind is InOwnLane behind everything that is queued in a caller's streams now.
func (o *ownLane) InOwnLaneBehind(streams []uint64, f func(lane device.Lane) error) error {
	return o.InOwnLane(func(lane device.Lane) error {
		for _, stream := range streams {
			x, err := o.device.Borrow(stream).Event()
			if err == nil {
				err = afterAll(lane, []device.Event{x})
			}
			if err != nil {
				return Explain(err)
			}
		}
		return f(lane)
	})
}

// OnLane is the Runner of a lane that the caller of this method owns.
func (*Memory) OnLane(lane device.Lane) Runner {
	return func(work func(device.Lane) error) error { return finish(EventBehind(lane, work(lane))) }
}

// CopyInCuts puts the copy of end bytes into a lane, cut by cut, and returns the last one's event. Two cuts are in the lane at a time: the link never rests, and work
// that a caller waits for, in another lane and in one piece, gets its turn in between. It asks before each cut how large it may be. After an error nothing of it
// that has an event is under way.
func (*Memory) CopyInCuts(end int64, size func() int64, put func(from, n int64) (device.Event, error)) (device.Event, error) {
	var last device.Event
	for from := int64(0); from < end; {
		n := min(size(), end-from)
		x, err := put(from, n)
		if from += n; last != nil && (from < end || err != nil) {
			err = finish(last, err)
		} else if last != nil {
			last.Drop() // a wait for the event behind it waits for both
		}
		if err != nil {
			return nil, finish(x, err)
		}
		last = x
	}
	return last, nil
}

// Finish waits for what QueueRead or QueueWrite has queued, also when that is not all: the caller that gets the error may use the memory again.
func (*Memory) Finish(x device.Event, err error) error { return finish(x, err) }

func finish(x device.Event, err error) error {
	if x == nil {
		return err
	}
	return errors.Join(err, wait(x))
}

// Wait blocks until an event has passed and drops it.
func (*Memory) Wait(x device.Event) error { return wait(x) }

func wait(x device.Event) error {
	defer x.Drop()
	return Explain(x.Wait())
}
