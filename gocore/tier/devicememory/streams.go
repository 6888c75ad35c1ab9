package devicememory

import "velocpy/gocore/device"

// streams orders the streams of a caller: work that uses several of them goes into the lane of the first.
type streams struct{ device device.Device }

// Join is the lane of the first of a caller's streams, behind what is queued in the others.
func (s *streams) Join(streams []uint64) (device.Lane, error) {
	if len(streams) == 0 {
		return s.device.Borrow(0), nil
	}
	first := s.device.Borrow(streams[0])
	for _, other := range streams[1:] {
		x, err := s.device.Borrow(other).Event()
		if err != nil {
			return nil, err
		}
		if err := afterAll(first, []device.Event{x}); err != nil {
			return nil, err
		}
	}
	return first, nil
}

// Rejoin makes the other streams of the caller wait for what was put into the lane of the first.
func (s *streams) Rejoin(streams []uint64, x device.Event) error {
	for _, other := range streams[min(1, len(streams)):] {
		if err := s.device.Borrow(other).After(x); err != nil {
			return err
		}
	}
	return nil
}

// Fence is the event behind everything that is queued in a caller's streams now.
func (s *streams) Fence(streams []uint64) (device.Event, error) {
	lane, err := s.Join(streams)
	if err != nil {
		return nil, Explain(err)
	}
	x, err := lane.Event()
	return x, Explain(err)
}
