package operation

import (
	"velocpy/gocore/cache"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/pending"
)

// TicketState describes the progress of a version.
type TicketState struct {
	Captured, Gone  bool
	Durable, Failed int32 // bit t is set for tier t of the contract
}

// Ticket returns the progress of a version. Once it reports Captured or Gone, no transfer reads the version's source.
func Ticket(s *cache.Cache, ticket uint64) (TicketState, error) {
	st, unread, err := stateOf(s, ticket)
	if unread != nil {
		unread.Abandon()
	}
	return st, err
}

// stateOf is Ticket. For a version that is gone it also returns the source that a transfer may still read.
func stateOf(s *cache.Cache, ticket uint64) (st TicketState, unread *borrow.Source, err error) {
	if err := s.Enter(); err != nil {
		return st, nil, err
	}
	defer s.Unlock()
	r := s.Engine.Record(ticket)
	switch {
	case r == nil && s.Engine.Lost(ticket) != nil:
		return TicketState{Gone: true, Failed: 1 << s.Tiers[0]}, nil, nil
	case r == nil:
		unread := s.Orphans.Has(ticket)
		return TicketState{Gone: !unread, Captured: !unread}, nil, nil
	case r.Gone() && s.Engine.Lost(ticket) != nil: // its space is still being released
		return TicketState{Gone: true, Failed: 1 << s.Tiers[0]}, pending.OpenSource(r.Version), nil
	case r.Gone():
		b := r.Version
		if pending.IsCopied(b) {
			return TicketState{Gone: true, Captured: true}, pending.OpenSource(b), nil
		}
		return TicketState{}, nil, nil // no caller wants the version any more, but a device still reads its source
	}
	st.Captured = r.Captured() && pending.IsCopied(r.Version)
	durable := s.Engine.Durable(r)
	for t, number := range s.Tiers {
		if a := s.DeviceTier(t); a != nil && t == r.Top() && a.Device.Lost() != nil {
			st.Failed |= 1 << number
		} else if durable&(1<<t) != 0 {
			st.Durable |= 1 << number
		} else if r.Failed() != nil {
			st.Failed |= 1 << number
		}
	}
	return st, nil, nil
}
