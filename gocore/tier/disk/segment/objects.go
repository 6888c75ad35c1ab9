package segment

import (
	"errors"
	"fmt"

	"velocpy/gocore/tier"

	"go.uber.org/atomic"
)

// Objects are ranges of a space, at offsets that its user assigns. Which range has an object is the user's knowledge alone: so nothing is listed, and nothing
// survives the process, unless a catalog beside the space refers to it.
type Objects struct {
	Space *Space
	// Failed and Unread explain errors of writes and of reads; nil: they stay as they are.
	Failed, Unread func(error) error
}

// Capabilities implements tier.Objects.
func (o *Objects) Capabilities() tier.Capabilities {
	return tier.Capabilities{Assigned: true, Grain: Block}
}

// Create implements tier.Objects. It takes no room on the disk yet.
func (o *Objects) Create(x tier.Object, wanted func() bool) (tier.Sink, error) {
	err := o.check(x)
	if err == nil && x.Offset%Block != 0 {
		err = fmt.Errorf("an object at %#x, which is no multiple of %#x: %w", x.Offset, Block, tier.ErrRange)
	}
	if err != nil {
		return nil, explained(o.Failed, err)
	}
	return &sink{Written: tier.Written{Object: x, Wanted: wanted}, o: o}, nil
}

// Open implements tier.Objects. It does not look for the bytes.
func (o *Objects) Open(x tier.Object) (tier.Source, error) {
	if err := o.check(x); err != nil {
		return nil, explained(o.Unread, err)
	}
	return &source{o, x}, nil
}

func (o *Objects) check(x tier.Object) error {
	if capacity := o.Space.Capacity(); x.Offset < 0 || x.Bytes < 0 || x.Offset > capacity || x.Bytes > capacity-x.Offset {
		return fmt.Errorf("an object at %#x, of %#x, in a space of %#x: %w", x.Offset, x.Bytes, capacity, tier.ErrRange)
	}
	return nil
}

// Delete implements tier.Objects: the user of the space reuses the range.
func (o *Objects) Delete(tier.Object) error { return nil }

// Sync implements tier.Objects: nothing is durable.
func (o *Objects) Sync() error { return nil }

// List implements tier.Objects.
func (o *Objects) List(func(tier.Object) error) error { return nil }

func explained(explain func(error) error, err error) error {
	if err == nil || explain == nil {
		return err
	}
	return explain(err)
}

// source is an object of a space. It implements tier.Prover and tier.Streamer.
type source struct {
	o  *Objects
	at tier.Object
}

// Bytes implements tier.Source.
func (s *source) Bytes() []byte { return nil }

// Read implements tier.Source: see Space.ReadPieces.
func (s *source) Read(at int64, to []byte, arrived func(at, n int64)) error {
	err := tier.CheckRange(s.at, at, int64(len(to)))
	if err == nil {
		err = s.o.Space.ReadPieces(s.at.Offset+at, to, arrived)
	}
	return explained(s.o.Unread, err)
}

// MostStreamed implements tier.Streamer.
func (s *source) MostStreamed() int64 {
	if !s.o.Space.Streams() {
		return 0
	}
	return MostStreamed
}

// Stream implements tier.Streamer: see Space.Stream.
func (s *source) Stream(ranges int, where func(i int) (at, n int64), take func(i int, p []byte) error) error {
	for i := range ranges {
		at, n := where(i)
		if err := tier.CheckRange(s.at, at, n); err != nil {
			return explained(s.o.Unread, err)
		}
	}
	var given atomic.Error // what take returns is no error of the tier
	err := s.o.Space.Stream(ranges, func(i int) (off, n int64) {
		at, n := where(i)
		return s.at.Offset + at, n
	}, func(i int, p []byte) error {
		err := take(i, p)
		if err != nil {
			given.CompareAndSwap(nil, err)
		}
		return err
	})
	if err != nil && err == given.Load() {
		return err
	}
	return explained(s.o.Unread, err)
}

// Holds implements tier.Prover: see Space.Holds.
func (s *source) Holds(at, n int64) error {
	err := tier.CheckRange(s.at, at, n)
	if err == nil {
		err = s.o.Space.Holds(s.at.Offset+at, n)
	}
	return explained(s.o.Unread, err)
}

// Proves implements tier.Prover: see Space.Proves.
func (s *source) Proves(at, n int64) error {
	err := tier.CheckRange(s.at, at, n)
	if err == nil {
		err = s.o.Space.Proves(s.at.Offset+at, n)
	}
	return explained(s.o.Unread, err)
}

// sink is an object that is being written.
type sink struct {
	tier.Written
	o *Objects
}

// Bytes implements tier.Sink.
func (s *sink) Bytes() []byte { return nil }

// Write implements tier.Sink: see Space.WriteWhile.
func (s *sink) Write(at int64, p []byte) error {
	err := s.Next(at, int64(len(p)), Block)
	if err == nil {
		err = s.o.Space.WriteWhile(s.Wanted, s.Object.Offset+at, p)
	}
	return s.Failed(s.explained(err))
}

// explained returns the errors of package tier as they are, and explains those of the space.
func (s *sink) explained(err error) error {
	switch {
	case errors.Is(err, ErrUnwanted), err == tier.ErrUnwanted:
		return tier.ErrUnwanted
	case err == tier.ErrEnded:
		return err
	}
	return explained(s.o.Failed, err)
}

// Commit implements tier.Sink. The bytes are where they belong.
func (s *sink) Commit() error { return s.explained(s.End()) }

// Abort implements tier.Sink. The user of the space reuses the range.
func (s *sink) Abort() error {
	_ = s.End() // nothing is left to be told
	return nil
}
