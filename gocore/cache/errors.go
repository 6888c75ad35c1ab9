package cache

import (
	"errors"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/transfer/borrow"
)

// Explain converts an error of the engine into one of the contract. rec, if not nil, is the checkpoint concerned.
func (ts *tiers) Explain(err error, rec *engine.Record) *status.Error {
	var known *status.Error
	var at *engine.TierError
	tier, cause := status.TierNone, err
	if errors.As(err, &at) && at.Tier < len(ts.Tiers) {
		tier, cause = ts.Tiers[at.Tier], at.Err // the engine's index of the tier means nothing to a caller
	}
	switch {
	case errors.As(err, &known):
		if known.Tier == status.TierNone {
			return known.AtTier(tier)
		}
		return known
	case errors.Is(err, engine.ErrNotFound):
		return status.Wrap(status.NotFound, err, "nothing to restore")
	case errors.Is(err, engine.ErrDropped):
		return status.New(status.Dropped, "the checkpoint was dropped, replaced or consumed meanwhile")
	case errors.Is(err, engine.ErrUnreachable):
		return status.Wrap(status.DeviceLost, err, "the checkpoint lay on a device alone").AtTier(status.TierDevice)
	case errors.Is(err, engine.ErrFull):
		return status.Wrap(status.TierFull, status.Without(cause, engine.ErrFull.Error()), "no room").AtTier(tier)
	case errors.Is(err, borrow.ErrAbandoned):
		return status.Wrap(status.Dropped, err, "not captured")
	case errors.Is(err, safego.ErrPoisoned):
		return status.Wrap(status.Poisoned, err, "the core panicked")
	}
	return status.Wrap(status.Internal, err, "unexpected")
}

// Mismatch is the error of bytes in a memory tier that differ from the captured bytes.
func (ts *tiers) Mismatch(rec *engine.Record, region, t int) *status.Error {
	return status.New(status.Corrupt, "history %q, checkpoint %s: the bytes are not those that were captured (checksum mismatch)", rec.Hist.Name, rec.Key).
		AtTier(ts.Tiers[t]).AtRegion(region)
}
