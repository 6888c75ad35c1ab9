package tiertest

import (
	"fmt"
	"sync"

	"velocpy/gocore/tier"
)

// Map is a tier that keeps its objects in a map, by their IDs: the model of an object store. A sink gathers the bytes, as the parts of a multipart upload; its
// Commit is a put that fails if there is such an object. A commit is durable at once. Every value that shares a store is another process's sight of it.
type Map struct{ *mapped }

type mapped struct {
	mu  sync.Mutex
	all map[uint64][]byte
}

// mapPart is how many bytes of a read arrive together.
const mapPart = 10_000

// NewMap returns an empty tier.
func NewMap() Map { return Map{&mapped{all: map[uint64][]byte{}}} }

// Capabilities implements tier.Objects.
func (m Map) Capabilities() tier.Capabilities {
	return tier.Capabilities{Durable: true, Shared: true, Listed: true, Conditional: true, Tracked: true, Grain: 1}
}

func (m Map) find(id uint64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.all[id]
	if !ok {
		return nil, fmt.Errorf("object %d: %w", id, tier.ErrAbsent)
	}
	return p, nil
}

// Create implements tier.Objects.
func (m Map) Create(o tier.Object, wanted func() bool) (tier.Sink, error) {
	if _, err := m.find(o.ID); err == nil {
		return nil, fmt.Errorf("object %d: %w", o.ID, tier.ErrExists)
	}
	if o.Bytes < 0 {
		return nil, fmt.Errorf("an object of %#x: %w", o.Bytes, tier.ErrRange)
	}
	return &mapSink{Written: tier.Written{Object: o, Wanted: wanted}, of: m}, nil
}

// Open implements tier.Objects.
func (m Map) Open(o tier.Object) (tier.Source, error) {
	p, err := m.find(o.ID)
	if err == nil && int64(len(p)) != o.Bytes {
		err = fmt.Errorf("object %d of %#x: %w", o.ID, o.Bytes, tier.ErrAbsent)
	}
	if err != nil {
		return nil, err
	}
	return mapSource{m, o}, nil
}

// Delete implements tier.Objects.
func (m Map) Delete(o tier.Object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, o.ID)
	return nil
}

// Sync implements tier.Objects.
func (m Map) Sync() error { return nil }

// List implements tier.Objects.
func (m Map) List(visit func(tier.Object) error) error {
	m.mu.Lock()
	var all []tier.Object
	for id, p := range m.all {
		all = append(all, tier.Object{ID: id, Bytes: int64(len(p))})
	}
	m.mu.Unlock()
	for _, o := range all {
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}

type mapSource struct {
	of     Map
	object tier.Object
}

// Bytes implements tier.Source.
func (s mapSource) Bytes() []byte { return nil }

// Read implements tier.Source.
func (s mapSource) Read(at int64, to []byte, arrived func(at, n int64)) error {
	p, err := s.of.find(s.object.ID)
	if err == nil {
		err = tier.CheckRange(s.object, at, int64(len(to)))
	}
	if err != nil {
		return err
	}
	for from := 0; from < len(to); {
		n := copy(to[from:min(len(to), from+mapPart)], p[at+int64(from):])
		if arrived != nil {
			arrived(int64(from), int64(n))
		}
		from += n
	}
	return nil
}

type mapSink struct {
	tier.Written
	of    Map
	bytes []byte
}

// Bytes implements tier.Sink.
func (s *mapSink) Bytes() []byte { return nil }

// Write implements tier.Sink.
func (s *mapSink) Write(at int64, p []byte) error {
	if err := s.Next(at, int64(len(p)), 1); err != nil {
		return err
	}
	s.bytes = append(s.bytes, make([]byte, at-int64(len(s.bytes)))...)
	s.bytes = append(s.bytes, p...)
	return nil
}

// Commit implements tier.Sink.
func (s *mapSink) Commit() error {
	if err := s.End(); err != nil {
		return err
	}
	p := append(s.bytes, make([]byte, s.Object.Bytes-int64(len(s.bytes)))...)
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if _, ok := s.of.all[s.Object.ID]; ok {
		return fmt.Errorf("object %d: %w", s.Object.ID, tier.ErrExists)
	}
	s.of.all[s.Object.ID] = p
	return nil
}

// Abort implements tier.Sink.
func (s *mapSink) Abort() error {
	_ = s.End() // nothing is left to be told
	s.bytes = nil
	return nil
}
