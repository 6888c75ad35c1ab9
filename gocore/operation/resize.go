package operation

import (
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/cache"
	"velocpy/gocore/config"
	"velocpy/gocore/figures"
	"velocpy/gocore/tier/devicememory"
)

// resize is the operation that ends when tiers keep to other budgets.
type resize struct {
	Op
	sized      []*devicememory.Memory // the devices that get another budget …
	host, disk bool                   // … and whether host and disk get one; out.Slot sums the bytes of all of these
	trims      int64                  // number of the trim request that it waits for; 0: none
	given      int64                  // bytes that the host tier had given back before
	counted    bool                   // in Cache.Resizing
}

// account is part of operation.
func (op *resize) account(c *figures.Counters) {
	op.Op.account(c)
	if op.counted {
		op.s.Resizing--
	}
}

// Resize changes the budgets of tiers. Those of devices and of the host tier are at most those that the store was opened with. New checkpoints keep
// to the new budgets at once. The returned operation ends when the memory beyond the budgets has been given back, as far as possible without the
// application. Ending the operation earlier does not undo the resize.
//
// Leases keep their memory, and so do checkpoints that no lower tier has room for; it is given back once they are released. If such checkpoints keep
// the host tier too large, the operation ends with an error, and none of them is lost. The disk tier keeps its checkpoints. It does not reuse space
// that becomes free until less than its budget is in use.
func Resize(s *cache.Cache, b config.Budgets, fd int32, out *Outcome) (*Op, status.Code, error) {
	op := &resize{Op: begun(s, fd)}
	op.does = op
	returned := false
	defer op.disownUnless(&returned)
	code, err := op.open(b, out)
	returned = true
	return &op.Op, code, err
}

func (op *resize) open(b config.Budgets, out *Outcome) (status.Code, error) {
	s := op.s
	budgets, err := op.budgets(b.Devices)
	if err == nil {
		err = checkBudgets(s, b)
	}
	if err == nil {
		err = s.Enter()
	}
	if err != nil {
		return status.CodeOf(err), err
	}
	defer s.Leave()
	for i, a := range op.sized {
		a.SetBudget(budgets[i])
	}
	if op.host = b.Host != nil; op.host {
		s.Host.SetBudget(*b.Host)
	}
	if op.disk = b.Disk != nil; op.disk {
		s.Disk.SetBudget(*b.Disk)
	}
	if b.Trim && s.Host != nil {
		op.trims = s.Host.Trim()
		_, op.given = s.Host.Counts()
	}
	s.Callers[&op.Op] = struct{}{}
	s.Resizing++
	op.counted = true
	return op.checkResize(out)
}

// checkBudgets returns the error of budgets that host and disk cannot have.
func checkBudgets(s *cache.Cache, b config.Budgets) error {
	if b.Host != nil {
		if err := s.CheckHost(*b.Host); err != nil {
			return err
		}
	}
	switch {
	case b.Disk == nil:
	case s.Disk == nil:
		return status.New(status.Unavailable, "the store has no disk tier: open it with disk=").AtTier(status.TierDisk)
	case s.Set.ReadOnly:
		return status.New(status.ReadOnly, "the store in %q is open for reading only", s.Set.Path)
	case *b.Disk < 0 || *b.Disk > config.MostBytes:
		return status.New(status.Invalid, "the budget of disk is %s; it cannot be negative or above 2^60 bytes", quantity.Exact(*b.Disk)).AtTier(status.TierDisk)
	}
	return nil
}

// budgets returns the bytes that devices are to have.
func (op *resize) budgets(devices []config.Device) ([]int64, error) {
	all := make([]int64, len(devices))
	for i, d := range devices {
		a, err := sizedOn(op.s, d)
		if err != nil {
			return nil, err
		}
		op.sized = append(op.sized, a)
		if all[i] = d.Bytes; d.Share > 0 {
			free, _, err := a.Device.Memory()
			if err != nil {
				return nil, devicememory.Explain(err)
			}
			all[i] = min(int64(float64(free+a.MappedNow())*d.Share), a.Reserved())
		}
		if all[i] > a.Reserved() {
			return nil, status.New(status.Invalid, "a budget of %s for device %d: the store was opened with %s, and a budget cannot become larger than that",
				quantity.Exact(all[i]), d.Ordinal, quantity.Exact(a.Reserved())).AtTier(status.TierDevice)
		}
	}
	return all, nil
}

// sizedOn returns the device that a budget is for.
func sizedOn(s *cache.Cache, d config.Device) (*devicememory.Memory, error) {
	if d.Bytes < 0 || d.Share < 0 || d.Share > 1 || d.Bytes > 0 && d.Share > 0 {
		return nil, status.New(status.Invalid, "the budget of device %d is %s or a share of %g", d.Ordinal, quantity.Exact(d.Bytes), d.Share)
	}
	if err := s.Enter(); err != nil {
		return nil, err
	}
	defer s.Unlock()
	a := s.DeviceByOrdinal(d.Ordinal)
	switch {
	case a == nil:
		return nil, status.New(status.Unavailable, "the store has no budget on device %d: open it with device={%d: ...}", d.Ordinal, d.Ordinal).AtTier(status.TierDevice)
	case a.Device.Lost() != nil:
		return nil, devicememory.Explain(a.Device.Lost())
	}
	return a, nil
}

// step is part of operation.
func (op *resize) step(out *Outcome) (status.Code, error) {
	op.s.Lock()
	defer op.s.Leave()
	return op.checkResize(out)
}

// checkResize ends the operation when no tier has anything left to give back. The lock is held.
func (op *resize) checkResize(out *Outcome) (status.Code, error) {
	s := op.s
	if s.Closing {
		op.end()
		return status.Closed, cache.ErrClosed
	}
	out.Slot = 0
	for _, a := range op.sized {
		if err := a.Device.Lost(); err != nil {
			op.end()
			return status.CodeOf(devicememory.Explain(err)), devicememory.Explain(err)
		}
		if !a.Settled() {
			return op.waits(s.Now())
		}
		out.Slot += a.Mapped()
	}
	if op.host && !s.Host.Settled() || op.disk && !s.Disk.Settled() || op.trims > 0 && !s.Host.Trimmed(op.trims) {
		return op.waits(s.Now())
	}
	if op.host {
		out.Slot += s.Host.InUse()
	}
	if op.disk {
		out.Slot += s.Disk.InUse()
	}
	if op.trims > 0 {
		_, given := s.Host.Counts()
		out.Slot += given - op.given
	}
	op.end()
	out.Waited = op.waited
	if err := op.stranded(); err != nil {
		return status.CodeOf(err), err
	}
	return status.OK, nil
}

// stranded returns the error of a smaller host tier beyond whose end checkpoints stay because no lower tier takes them. The lock is held.
func (op *resize) stranded() error {
	if !op.host {
		return nil
	}
	s, t := op.s, op.s.HostTier()
	n, bytes := s.Engine.Stranded(t)
	if n == 0 {
		return nil
	}
	return status.New(status.TierFull, "host has a budget of %s now, and keeps %d checkpoints of %s beyond it: they exist nowhere else, and no tier below takes them. "+
		"Nothing is lost, and new checkpoints keep to the budget. Their memory is given back when they are dropped or consumed, or when a tier below has room: "+
		"drop some, or give disk a larger budget and resize host again", quantity.Exact(s.Engine.Capacity(t)), n, quantity.Exact(bytes)).AtTier(status.TierHost)
}
