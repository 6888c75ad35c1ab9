package devicememory

import (
	"velocpy/gocore/device"
	"velocpy/gocore/model"
)

// Checksums takes the checksums of a slot's regions on the device and waits for them.
func (m *Memory) Checksums(lane device.Lane, offset int64, l *model.Layout) ([]uint64, error) {
	sums, x, err := m.QueueChecksums(lane, Checks, offset, l)
	if err != nil {
		return nil, err
	}
	return m.AwaitChecksums(sums, x)
}

// QueueChecksums queues taking the checksums of a slot's regions. After an error nothing of it is under way.
func (m *Memory) QueueChecksums(lane device.Lane, kind Kind, offset int64, l *model.Layout) (sums device.Sums, x device.Event, err error) {
	x, err = m.QueueRead(lane, kind, offset, l.Slot, func() (err error) {
		sums, err = lane.Hash(inSlot(m.Address(offset), l.Spans))
		return err
	})
	if err == nil {
		return sums, x, nil
	}
	if waited := finish(x, nil); sums != nil && x != nil && waited == nil {
		sums.Discard()
	}
	return nil, nil, err
}

// AwaitChecksums waits for the checksums of a slot. It tries to wait twice: a caller may have been lent the bytes by then, so that they cannot be read again.
func (m *Memory) AwaitChecksums(sums device.Sums, x device.Event) ([]uint64, error) {
	again := x.Keep()
	err := finish(x, nil)
	if err != nil {
		err = finish(again, nil)
	} else {
		again.Drop()
	}
	if err != nil {
		return nil, err
	}
	return sums.Take(), nil
}
