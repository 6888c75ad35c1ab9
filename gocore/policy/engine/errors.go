package engine

import (
	"errors"
	"fmt"
)

// The errors of operations. The store translates them for its callers.
var (
	ErrUnreachable = errors.New("only a tier that cannot be read any more has the bytes")
	ErrNotFound    = errors.New("no such checkpoint")
	ErrDropped     = errors.New("the checkpoint was dropped, replaced or consumed meanwhile")
	ErrNotCaptured = errors.New("an object that the checkpoint needs is still being captured, or its capture failed")
	ErrApart       = errors.New("the objects of the checkpoint belong to several devices")
	ErrFull        = errors.New("tier full")
	// ErrStopped ends a transfer that the caller has stopped because the version is gone. It is no failure.
	ErrStopped = errors.New("the version went while it was being moved")
)

// TierError says which tier an error comes from.
type TierError struct {
	Tier int
	Err  error
}

func (e *TierError) Error() string { return fmt.Sprintf("tier %d: %v", e.Tier, e.Err) }

// Unwrap gives the cause.
func (e *TierError) Unwrap() error { return e.Err }

func full(tier int, format string, args ...any) error {
	return &TierError{Tier: tier, Err: fmt.Errorf("%w: %s", ErrFull, fmt.Sprintf(format, args...))}
}
