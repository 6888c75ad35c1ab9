package store

import (
	"velocpy/gocore/quantity"
	"velocpy/gocore/status"
)

// Resize gives devices other budgets, at most those that the store was opened with. Captures keep to them at once. It returns an operation that ends
// when the memory beyond them has been given back, or as much of it as will be without the application: leases and what the tiers below
// have no room for keep theirs, and it is given back when they let go. Ending it earlier takes nothing back.
func (s *Store) Resize(devices []Device, fd int32, out *Outcome) (*Op, status.Code, error) {
	op := &Op{s: s, kind: resizeOp, bell: bell{fd: fd}}
	returned := false
	defer op.disownUnless(&returned)
	code, err := s.openResize(op, devices, out)
	returned = true
	return op, code, err
}

func (s *Store) openResize(op *Op, devices []Device, out *Outcome) (status.Code, error) {
	budgets, err := s.budgets(op, devices)
	if err != nil {
		return codeOf(err), err
	}
	if err := s.enter(); err != nil {
		return codeOf(err), err
	}
	defer s.leave()
	for i, a := range op.sized {
		s.setBudget(a, budgets[i])
	}
	s.ops[op] = struct{}{}
	s.resizing++
	return op.checkResize(out)
}

// budgets are the bytes that devices are to have.
func (s *Store) budgets(op *Op, devices []Device) ([]int64, error) {
	all := make([]int64, len(devices))
	for i, d := range devices {
		a, err := s.sizedOn(d)
		if err != nil {
			return nil, err
		}
		op.sized = append(op.sized, a)
		if all[i] = d.Bytes; d.Share > 0 {
			free, _, err := a.dev.Memory()
			if err != nil {
				return nil, deviceError(err)
			}
			all[i] = min(int64(float64(free+a.arena.Mapped())*d.Share), a.extent.reserved)
		}
		if all[i] > a.extent.reserved {
			return nil, status.New(status.Invalid, "a budget of %s for device %d: the store was opened with %s, and a budget cannot become larger than that",
				quantity.Exact(all[i]), d.Ordinal, quantity.Exact(a.extent.reserved)).AtTier(status.TierDevice)
		}
	}
	return all, nil
}

// sizedOn is the device that a budget is for.
func (s *Store) sizedOn(d Device) (*accelerator, error) {
	if d.Bytes < 0 || d.Share < 0 || d.Share > 1 || d.Bytes > 0 && d.Share > 0 {
		return nil, status.New(status.Invalid, "the budget of device %d is %s or a share of %g", d.Ordinal, quantity.Exact(d.Bytes), d.Share)
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	a := s.on(d.Ordinal)
	switch {
	case a == nil:
		return nil, status.New(status.Unavailable, "the store has no budget on device %d: open it with device={%d: ...}", d.Ordinal, d.Ordinal).AtTier(status.TierDevice)
	case a.dev.Lost() != nil:
		return nil, deviceError(a.dev.Lost())
	}
	return a, nil
}

// setBudget makes the tier keep to another budget. The lock is held.
func (s *Store) setBudget(a *accelerator, budget int64) {
	x := &a.extent
	x.budget.Store(budget)
	x.refused, x.full, x.settled = 0, false, false
	if to := x.down(budget); to <= s.eng.Capacity(a.tier) {
		s.eng.Shrink(s.now(), a.tier, to)
	}
	tell(x.turn)
}

func (op *Op) stepResize(out *Outcome) (status.Code, error) {
	op.s.mu.Lock()
	defer op.s.leave()
	return op.checkResize(out)
}

// checkResize ends the operation when no device gives anything back any more. The lock is held.
func (op *Op) checkResize(out *Outcome) (status.Code, error) {
	s := op.s
	if s.closing {
		op.end()
		return status.Closed, errClosed
	}
	out.Slot = 0
	for _, a := range op.sized {
		x := &a.extent
		if err := a.dev.Lost(); err != nil {
			op.end()
			return codeOf(deviceError(err)), deviceError(err)
		}
		if x.mapped() > x.budget.Load() && !x.settled {
			return op.waits(s.now())
		}
		out.Slot += x.mapped()
	}
	op.end()
	out.Waited = op.waited
	return status.OK, nil
}

// ringSized wakes those who wait for memory to be given back.
func (s *Store) ringSized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for op := range s.ops {
		if op.kind == resizeOp {
			op.bell.ring()
		}
	}
}
