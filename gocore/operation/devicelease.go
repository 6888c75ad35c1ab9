package operation

import (
	"errors"
	"time"
	"unsafe"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/device"
	"velocpy/gocore/tier/devicememory"
)

// verifyOnDevice compares, in debug mode, the bytes of a lease with those that were lent. The comparison runs behind all work of the holder's
// streams.
func (l *Lease) verifyOnDevice(streams []uint64) error {
	if l.sums == nil {
		return nil
	}
	a := l.device
	var sums []uint64
	err := a.InOwnLaneBehind(streams, func(lane device.Lane) (err error) {
		sums, err = a.Checksums(lane, l.offset, &l.Layout.Layout)
		return err
	})
	if err != nil {
		return err
	}
	if bad := checkpoint.Differing(sums, l.sums); len(bad) > 0 {
		return l.written(int(bad[0]), status.TierDevice)
	}
	return nil
}

// lookAgain is the interval at which a stream that is being captured into a graph is polled for the end of the graph capture.
const lookAgain = time.Millisecond

// releaseWhenRecorded returns a lease once the streams that are being captured into a graph accept events again. Before that it is unknown when they
// have read the bytes. No caller is left to receive the error about a holder that wrote, so it is logged.
func (l *Lease) releaseWhenRecorded(streams, recording []uint64) {
	safego.Go("lease release", func() {
		for len(recording) > 0 {
			time.Sleep(lookAgain)
			recording, _ = l.device.NoteReads(recording, l.offset, l.Layout.Slot) // when the device is lost, there is nothing to wait for
		}
		err := l.verifyOnDevice(streams)
		for errors.Is(err, device.ErrRecording) {
			time.Sleep(lookAgain)
			err = l.verifyOnDevice(streams)
		}
		if err != nil {
			logring.Add(logring.Error, "a lease was given back: "+err.Error())
		}
		l.giveBack(err != nil)
	})
}

// Place tells where Base lies: 0 for host memory, otherwise 1 + the number of the device.
func (l *Lease) Place() int32 {
	if l.device == nil {
		return 0
	}
	return int32(l.device.Device.Ordinal()) + 1
}

// Use lets one more stream of the caller read the bytes, as the streams may that the restore named.
func (l *Lease) Use(stream uint64) error {
	if l.device == nil {
		return nil
	}
	return devicememory.Explain(l.device.Lend([]uint64{stream}, l.offset, l.Layout.Slot, l.Reads.Last))
}

// Read copies bytes of the slot to host memory and waits for them.
func (l *Lease) Read(to []byte, offset int64) error {
	if offset < 0 || offset > l.Layout.Slot-int64(len(to)) {
		return status.New(status.Invalid, "%d bytes at %d of a slot of %d", len(to), offset, l.Layout.Slot)
	}
	if l.device == nil {
		copy(to, unsafe.Slice((*byte)(l.Base), l.Layout.Slot)[offset:])
		return nil
	}
	return l.device.Read(to, l.offset+offset)
}
