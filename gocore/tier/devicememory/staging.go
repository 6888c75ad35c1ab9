package devicememory

import (
	"velocpy/gocore/device"
)

// Staging is memory of a device beside the tier's, for one goroutine: bytes that have been encoded on their way to the host, or are to be decoded on their way
// back. The zero value has none.
type Staging struct {
	arena device.Arena
}

// Open returns the address of so many bytes, which it maps the first time. All calls ask for the same number. ErrMemory, wrapped: the device has none left.
func (s *Staging) Open(d device.Device, bytes int64) (device.Address, error) {
	if s.arena == nil {
		arena, err := d.Reserve(bytes)
		if err != nil {
			return 0, err
		}
		s.arena = arena
	}
	for s.arena.Mapped() < bytes {
		if _, err := s.arena.Grow(bytes); err != nil {
			return 0, err
		}
	}
	return s.arena.Base(), nil
}

// Free gives the memory back. No queued work may use it.
func (s *Staging) Free() error {
	if s.arena == nil {
		return nil
	}
	arena := s.arena
	s.arena = nil
	return arena.Free()
}
