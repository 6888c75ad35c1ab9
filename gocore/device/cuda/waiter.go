package cuda

import (
	"errors"
	"sync"
	"time"
)

// waiters block threads until an event of an application's stream has happened. An event with blocking waits costs the stream that records it 1.2 µs
// on an H200. So events in the application's streams are without, and a wait for them would spin. Instead a stream of our own waits for such an event
// and records a blocking one.
type waiters struct {
	d    *Device
	mu   sync.Mutex
	made int
	idle []waiter
}

// mostWaiters bounds their number: the hardware has few streams. A thread that finds none polls instead.
const mostWaiters = 8

// waiter serves one thread at a time, so that threads do not wait for each other's events.
type waiter struct {
	stream Stream
	event  Event
}

// wait fails only if the state of the event cannot be determined: the caller frees memory afterwards.
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
	if err != nil { // a later use of this waiter must not wait for this event
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
