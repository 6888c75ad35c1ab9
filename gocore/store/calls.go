package store

import (
	"velocpy/gocore/base/status"
	"velocpy/gocore/config"
	"velocpy/gocore/operation"
)

// Checkpoint begins a checkpoint. A small one that finds room ends within the call.
func (h *History) Checkpoint(a *operation.CheckpointArgs, out *operation.Outcome) (*operation.Op, status.Code, error) {
	return operation.Checkpoint(h.s.Cache, h, a, out)
}

// CheckpointMany captures checkpoints in their order, until one of them needs its caller, or a slice of time is over. It returns how many were captured, and
// the operation of the next one, if that has begun.
func (h *History) CheckpointMany(all []operation.CheckpointArgs, outs []operation.Outcome) (done int, op *operation.Op, code status.Code, err error) {
	return operation.CheckpointMany(h.s.Cache, h, all, outs)
}

// Restore begins a restore. A small checkpoint in the fastest tier is restored within the call.
func (h *History) Restore(a *operation.RestoreArgs, out *operation.Outcome) (*operation.Op, status.Code, error) {
	return operation.Restore(h.s.Cache, h, a, out)
}

// Wait returns an operation that ends when the versions are captured (tier TierNone) or durable in the tier. It covers one ticket, all of a history,
// or, with h nil and ticket zero, all of the store.
func (s *Store) Wait(h *History, ticket uint64, tier int, fd int32) (*operation.Op, status.Code, error) {
	if h == nil {
		return operation.Wait(s.Cache, nil, ticket, tier, fd)
	}
	return operation.Wait(s.Cache, h, ticket, tier, fd)
}

// Resize changes the budgets of tiers. The returned operation ends when the memory beyond the budgets has been given back.
func (s *Store) Resize(b config.Budgets, fd int32, out *operation.Outcome) (*operation.Op, status.Code, error) {
	return operation.Resize(s.Cache, b, fd, out)
}

// Ticket returns the progress of a version. Once it reports Captured or Gone, no transfer reads the version's source.
func (s *Store) Ticket(ticket uint64) (operation.TicketState, error) {
	return operation.Ticket(s.Cache, ticket)
}
