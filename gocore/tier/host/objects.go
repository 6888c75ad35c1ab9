package host

import (
	"fmt"

	"velocpy/gocore/tier"
)

// Objects are ranges of the memory, at the offsets that the engine assigns. They vanish with the process.
type Objects struct{ memory *Memory }

// Objects returns the memory as a tier of objects.
func (m *Memory) Objects() *Objects { return &m.objects }

// Capabilities implements tier.Objects.
func (o *Objects) Capabilities() tier.Capabilities {
	return tier.Capabilities{Addressable: true, Assigned: true, Grain: 1}
}

// Create implements tier.Objects.
func (o *Objects) Create(x tier.Object, wanted func() bool) (tier.Sink, error) {
	p, err := o.bytes(x)
	if err != nil {
		return nil, err
	}
	return &sink{Written: tier.Written{Object: x, Wanted: wanted}, bytes: p}, nil
}

// Open implements tier.Objects.
func (o *Objects) Open(x tier.Object) (tier.Source, error) {
	p, err := o.bytes(x)
	if err != nil {
		return nil, err
	}
	return source(p), nil
}

func (o *Objects) bytes(x tier.Object) ([]byte, error) {
	p := o.memory.Bytes(x.Offset, x.Bytes)
	if p == nil {
		return nil, fmt.Errorf("an object at %#x, of %#x, in memory of %#x: %w", x.Offset, x.Bytes, o.memory.Size(), tier.ErrRange)
	}
	return p, nil
}

// Delete implements tier.Objects: the engine has taken the range back.
func (o *Objects) Delete(tier.Object) error { return nil }

// Sync implements tier.Objects: nothing is durable.
func (o *Objects) Sync() error { return nil }

// List implements tier.Objects: the engine knows what lies where.
func (o *Objects) List(func(tier.Object) error) error { return nil }

// source is an object of the memory.
type source []byte

// Bytes implements tier.Source.
func (s source) Bytes() []byte { return s }

// Read implements tier.Source.
func (s source) Read(at int64, to []byte, arrived func(at, n int64)) error {
	if err := tier.CheckRange(tier.Object{Bytes: int64(len(s))}, at, int64(len(to))); err != nil {
		return err
	}
	copy(to, s[at:])
	if arrived != nil && len(to) > 0 {
		arrived(0, int64(len(to)))
	}
	return nil
}

// sink is an object that is being written. What it has bytes of is there at once; that it can be opened is the engine's business.
type sink struct {
	tier.Written
	bytes []byte
}

// Bytes implements tier.Sink.
func (s *sink) Bytes() []byte { return s.bytes }

// Write implements tier.Sink.
func (s *sink) Write(at int64, p []byte) error {
	if err := s.Next(at, int64(len(p)), 1); err != nil {
		return err
	}
	copy(s.bytes[at:], p)
	return nil
}

// Commit implements tier.Sink.
func (s *sink) Commit() error { return s.End() }

// Abort implements tier.Sink.
func (s *sink) Abort() error {
	_ = s.End() // nothing is left to be told
	return nil
}
