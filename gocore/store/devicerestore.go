package store

import (
	"unsafe"

	"velocpy/gocore/copier"
	"velocpy/gocore/device"
	"velocpy/gocore/memory"
	"velocpy/gocore/status"
)

// pointer shows an address of a device as a pointer. Nobody in the core follows it.
func pointer(at device.Address) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// lookOnDevice goes on with a restore whose bytes lie on a device. A lease is given as it is: what lies there was captured there, or
// verified when it came up. The lock is held.
func (op *Op) lookOnDevice(out *Outcome, a *accelerator) (status.Code, error) {
	op.at, op.placed = op.s.eng.Fragment(op.restore.Rec, op.restore.Tier).Offset, true
	if op.lends && op.s.set.verify != verifyAlways {
		if err := op.lendOn(a); err != nil {
			return op.failRestore(op.s.explain(deviceError(err, a.tier), op.restore.Rec))
		}
		return op.endRestore(out)
	}
	return status.Again, nil
}

// lendOn makes the caller's streams wait for who writes the slot.
func (op *Op) lendOn(a *accelerator) error {
	a.mu.Lock()
	before := a.hazards.BeforeRead(nil, op.at, op.restore.Rec.Size)
	a.mu.Unlock()
	defer func() {
		for _, m := range before {
			m.Drop()
		}
	}()
	for _, stream := range op.streams {
		for _, m := range before {
			if err := a.dev.Borrow(stream).After(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// stepDeviceRestore gives bytes back that lie on a device: queued in the caller's order where they stay there, or else by way of host
// memory.
func (op *Op) stepDeviceRestore(out *Outcome) (status.Code, error) {
	a := op.s.home(op.restore.Rec)
	if op.s.set.verify == verifyAlways && !op.check {
		if code, err := op.inspectSlot(out, a); code != status.Again {
			return code, err
		}
	}
	if op.lends {
		return op.endOnDevice(out, op.lendOn(a))
	}
	if op.device == a && op.together() {
		return op.endOnDevice(out, op.scatter(a))
	}
	return op.stage(out, a)
}

// inspectSlot verifies a slot and waits for the answer.
func (op *Op) inspectSlot(out *Outcome, a *accelerator) (status.Code, error) {
	s, rec := op.s, op.restore.Rec
	b := rec.Body.(*body)
	if err := s.settleCapture(a, b); err != nil {
		return op.endOnDevice(out, err)
	}
	if b.sums == nil {
		op.check = true
		return status.Again, nil
	}
	a.ownLane.Lock()
	bad, err := s.inspectOn(a, a.own, op.at, b)
	a.ownLane.Unlock()
	switch {
	case err != nil:
		return op.endOnDevice(out, err)
	case bad >= 0:
		return op.endOnDevice(out, s.corrupt(rec, bad, op.restore.Tier))
	}
	op.check = true
	return status.Again, nil
}

// together tells whether all destinations lie on the device.
func (op *Op) together() bool {
	for i := range op.regions {
		if op.regions[i].Place == 0 && op.regions[i].Bytes > 0 {
			return false
		}
	}
	return true
}

// scatter queues the copy into the destinations behind the caller's work.
func (op *Op) scatter(a *accelerator) error {
	lane, err := a.join(op.streams)
	if err != nil {
		return err
	}
	began := op.s.now()
	spans := op.restore.Rec.Body.(*body).layout.spans
	m, err := a.reading(lane, op.at, op.restore.Rec.Size, func() error { return lane.Scatter(pieces(a.at(op.at), spans, op.want, op.regions)) })
	op.copied += op.s.now() - began
	if err != nil {
		return err
	}
	defer m.Drop()
	return a.rejoin(op.streams, m)
}

func (op *Op) endOnDevice(out *Outcome, err error) (status.Code, error) {
	op.s.mu.Lock()
	defer op.s.leave()
	if err != nil {
		return op.failRestore(op.s.explain(deviceError(err, op.restore.Tier), op.restore.Rec))
	}
	return op.endRestore(out)
}

// stage brings the bytes to host memory of the operation's own and goes on from there.
func (op *Op) stage(out *Outcome, a *accelerator) (status.Code, error) {
	l := op.restore.Rec.Body.(*body).layout
	if op.private == nil {
		m, err := memory.Map("private restore", max(l.slot, 1))
		if err != nil {
			return op.endOnDevice(out, status.Wrap(status.IO, err, "cannot map %d bytes beside the cache", l.slot))
		}
		op.private = m
	}
	bytes := op.private.Bytes(0, op.private.Size())
	if op.mark == nil {
		a.ownLane.Lock()
		m, err := a.reading(a.own, op.at, max(l.end(), 1), func() error {
			for _, i := range op.want {
				span := l.spans[i]
				if span.Bytes == 0 {
					continue
				}
				if err := a.own.Copy(addressOf(bytes[span.Offset:]), a.at(op.at+span.Offset), span.Bytes); err != nil {
					return err
				}
			}
			return nil
		})
		a.ownLane.Unlock()
		if err != nil {
			return op.endOnDevice(out, err)
		}
		op.watch(m)
	}
	passed, err := op.mark.Passed()
	switch {
	case err != nil:
		op.dropMark()
		return op.endOnDevice(out, err)
	case !passed:
		return status.Pending, nil
	}
	op.dropMark()
	b := op.restore.Rec.Body.(*body)
	if err := op.s.settleCapture(a, b); err != nil {
		return op.endOnDevice(out, err)
	}
	op.placed, op.slot = false, bytes
	op.check = b.sums != nil && op.s.set.verify != verifyOff
	return status.Again, nil
}

// sends tells whether destinations lie on a device while the bytes do not.
func (op *Op) sends() bool { return op.device != nil && !op.placed && !op.lends }

// send queues the copies from host memory to destinations on a device, and makes those to host memory. The lock is held.
func (op *Op) send(out *Outcome) (status.Code, error) {
	op.sent = true
	return status.Again, nil
}

// stepSent ends a restore whose bytes go from host memory to a device.
func (op *Op) stepSent(out *Outcome) (status.Code, error) {
	a := op.device
	if op.mark == nil {
		lane, err := a.join(op.streams)
		if err == nil {
			err = op.sendAll(lane)
		}
		var m device.Mark
		if err == nil {
			m, err = lane.Mark()
		}
		if err == nil {
			err = a.rejoin(op.streams, m)
		}
		if err != nil {
			return op.endOnDevice(out, err)
		}
		op.watch(m)
	}
	passed, err := op.mark.Passed()
	if err == nil && !passed {
		return status.Pending, nil // the bytes are the store's: they stay until they have been read
	}
	op.dropMark()
	return op.endOnDevice(out, err)
}

func (op *Op) sendAll(lane device.Lane) error {
	spans := op.restore.Rec.Body.(*body).layout.spans
	var here []copier.Piece
	for j, i := range op.want {
		r := &op.regions[j]
		from := unsafe.Pointer(unsafe.SliceData(op.slot[spans[i].Offset:]))
		switch {
		case r.Place == 0:
			here = append(here, copier.Piece{Slot: from, Bytes: r.Bytes, Mem: r.Mem})
		case len(r.Mem.Shape) == 0:
			if err := lane.Copy(device.Address(r.Mem.Base), device.Address(from), r.Bytes); err != nil {
				return err
			}
		default:
			if err := lane.Scatter([]device.Piece{{Slot: device.Address(from), Bytes: r.Bytes, Mem: r.Mem}}); err != nil {
				return err
			}
		}
	}
	job := copier.NewJob(copier.Scatter, here, copier.Options{Pool: op.s.pool})
	defer job.Free()
	for !job.Run(slice) {
	}
	return nil
}

// readOn notes that the caller's streams have read a range.
func (a *accelerator) readOn(streams []uint64, offset, bytes int64) error {
	for _, stream := range streams {
		m, err := a.dev.Borrow(stream).Mark()
		if err != nil {
			return deviceError(err, a.tier)
		}
		a.mu.Lock()
		a.hazards.Read(offset, bytes, m)
		a.mu.Unlock()
		m.Drop()
	}
	return nil
}

// Place is where Base lies: 0 for host memory, 1 + the number of the device otherwise.
func (l *Lease) Place() int32 {
	if l.device == nil {
		return 0
	}
	return int32(l.device.dev.Ordinal()) + 1
}

// Read copies bytes of the slot to host memory and waits for them.
func (l *Lease) Read(to []byte, offset int64) error {
	if offset < 0 || offset > l.layout.slot-int64(len(to)) {
		return status.New(status.Invalid, "%d bytes at %d of a slot of %d", len(to), offset, l.layout.slot)
	}
	if l.device == nil {
		copy(to, unsafe.Slice((*byte)(l.Base), l.layout.slot)[offset:])
		return nil
	}
	return l.device.read(to, l.offset+offset)
}
