package cuda

import (
	"errors"
	"sync"
	"time"
)

// waiters put threads to sleep until an event of somebody else's stream has happened. An event that the driver wakes threads for costs the
// stream that records it 1.2 µs on an H200, so those of the application's streams are not of that kind: the driver would spin. They are
// waited for in a stream of our own, which records one that is.
type waiters struct {
	d    *Device
	mu   sync.Mutex
	made int
	idle []waiter
}

// mostWaiters is how many there are at most. Who finds none looks now and then instead: streams are few in the hardware.
const mostWaiters = 8

// waiter serves one thread at a time: the next one must not wait for what this one does.
type waiter struct {
	stream Stream
	event  Event
}

// wait fails only if nobody can tell whether the event has happened: who waits gives memory away afterwards.
func (w *waiters) wait(sign Event) error {
	if done, err := w.d.driver.QueryEvent(w.d.context, sign); done || err != nil {
		return err
	}
	asleep := w.asleep(sign)
	for pause := 50 * time.Microsecond; asleep != nil; pause = min(2*pause, time.Millisecond) {
		done, err := w.d.driver.QueryEvent(w.d.context, sign)
		if done || err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

func (w *waiters) asleep(sign Event) error {
	one, err := w.take()
	if err != nil {
		return err
	}
	driver, context := w.d.driver, w.d.context
	if err = driver.StreamWaitEvent(context, one.stream, sign); err == nil {
		if err = driver.RecordEvent(context, one.event, one.stream); err == nil {
			err = driver.SynchronizeEvent(context, one.event)
		}
	}
	if err != nil { // the next one must not wait for this sign
		return errors.Join(err, w.drop(one))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = append(w.idle, one)
	return nil
}

var errManyWaiters = errors.New("as many threads wait as there are streams to wait in")

func (w *waiters) take() (waiter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.idle); n > 0 {
		one := w.idle[n-1]
		w.idle = w.idle[:n-1]
		return one, nil
	}
	if w.made == mostWaiters {
		return waiter{}, errManyWaiters
	}
	stream, err := w.d.driver.CreateStream(w.d.context, w.d.least)
	if err != nil {
		return waiter{}, err
	}
	event, err := w.d.driver.CreateEvent(w.d.context, true)
	if err != nil {
		return waiter{}, errors.Join(err, w.d.driver.DestroyStream(w.d.context, stream))
	}
	w.made++
	return waiter{stream, event}, nil
}

func (w *waiters) drop(one waiter) error {
	w.mu.Lock()
	w.made--
	w.mu.Unlock()
	return errors.Join(w.d.driver.DestroyEvent(w.d.context, one.event), w.d.driver.DestroyStream(w.d.context, one.stream))
}

func (w *waiters) free() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var failed []error
	for _, one := range w.idle {
		failed = append(failed,
			w.d.check("event given back", w.d.driver.DestroyEvent(w.d.context, one.event)),
			w.d.check("stream given back", w.d.driver.DestroyStream(w.d.context, one.stream)))
	}
	w.idle = nil
	return errors.Join(failed...)
}
