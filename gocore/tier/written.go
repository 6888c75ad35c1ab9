package tier

import "fmt"

// Written checks the calls of one sink: offsets that ascend inside the object, an object that is wanted, and one end. Sinks embed it.
type Written struct {
	Object Object
	Wanted func() bool // nil: always
	end    int64       // of the last write
	err    error       // of the first write that failed; ErrEnded after the end
}

// Next checks a write before it is done. grain is the tier's.
func (w *Written) Next(at, n, grain int64) error {
	switch room := Grains(w.Object.Bytes, grain); {
	case w.err != nil:
	case at < w.end || n < 0 || at > room || n > room-at:
		w.err = fmt.Errorf("%d bytes at %d of an object of %d, of which %d are passed: %w", n, at, w.Object.Bytes, w.end, ErrRange)
	case w.Wanted != nil && !w.Wanted():
		w.err = ErrUnwanted
	default:
		w.end = at + n
	}
	return w.err
}

// Failed takes the result of a write.
func (w *Written) Failed(err error) error {
	if err != nil {
		w.err = err
	}
	return err
}

// End ends the object. It returns the error of an earlier write, or ErrEnded.
func (w *Written) End() error {
	err := w.err
	w.err = ErrEnded
	return err
}

// Ended tells whether the object was committed or aborted.
func (w *Written) Ended() bool { return w.err == ErrEnded }

// Grains is the room that an object takes, without the one grain of an empty one.
func Grains(bytes, grain int64) int64 { return (bytes + grain - 1) / grain * grain }

// CheckRange tells whether a read lies in an object.
func CheckRange(o Object, at, n int64) error {
	if at < 0 || n < 0 || at > o.Bytes || n > o.Bytes-at {
		return fmt.Errorf("%d bytes at %d of an object of %d: %w", n, at, o.Bytes, ErrRange)
	}
	return nil
}
