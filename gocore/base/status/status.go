// Package status holds the numbers of the C contract (cshim/velocpy_abi.h) and the error type that carries them from their origin to the boundary.
package status

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Code is a status of the C contract: errors are negative. A test compares the numbers with the header.
type Code int32

const (
	OK      Code = 0
	Pending Code = 1 // wait on the event fd, then step
	Again   Code = 2 // more work is ready: step at once

	Invalid     Code = -1  // an argument is wrong
	NotFound    Code = -2  // no checkpoint of this key
	Closed      Code = -3  // the store is closed
	Stale       Code = -4  // the handle is unknown or outdated
	TierFull    Code = -5  // no room, and the engine cannot make any by itself
	IO          Code = -6  // a tier failed; Errno says how
	Corrupt     Code = -7  // checksum mismatch; Region and Tier say where
	Dropped     Code = -8  // dropped, replaced or consumed while the operation ran
	Changed     Code = -9  // the checkpoint's layout is not the expected one
	Poisoned    Code = -10 // the core panicked earlier
	Forked      Code = -11 // a forked child called; only the shim returns it
	Timeout     Code = -12 // only the shim returns it
	Unavailable Code = -13 // the tier does not exist in this build or on this machine
	Internal    Code = -14 // an invariant of the engine broke
	Durability  Code = -15 // the bytes can never reach the requested tier
	DeviceLost  Code = -16 // the accelerator's context is lost
	Belated     Code = -17 // the bytes of an earlier restore were not what was captured; Text names the checkpoint
	Locked      Code = -18 // another process or store has it open for writing
	NoStore     Code = -19 // the directory contains no store
	Later       Code = -20 // the store was written by a later version
	Damaged     Code = -21 // acknowledged data is missing from the store
	ReadOnly    Code = -22 // the store is open for reading only
	Lost        Code = -23 // the store's directory was removed, or another process took it over
)

// Tiers by the numbers of the contract.
const (
	TierNone    = -1
	TierDevice  = 0
	TierHost    = 1
	TierDisk    = 2
	TierArchive = 3
)

// RegionNone means that no region is concerned.
const RegionNone = -1

var names = map[Code]string{
	OK: "ok", Pending: "pending", Again: "again",
	Invalid: "invalid argument", NotFound: "not found", Closed: "closed", Stale: "stale handle",
	TierFull: "tier full", IO: "i/o error", Corrupt: "corrupt", Dropped: "dropped", Changed: "layout changed",
	Poisoned: "poisoned", Forked: "forked", Timeout: "timeout", Unavailable: "unavailable",
	Internal: "internal error", Durability: "not durable", DeviceLost: "device lost", Belated: "belated",
	Locked: "locked", NoStore: "no store", Later: "later version", Damaged: "damaged", ReadOnly: "read-only", Lost: "lost",
}

// String returns a short name, or the number of an unknown code.
func (c Code) String() string {
	if name, ok := names[c]; ok {
		return name
	}
	return fmt.Sprintf("status %d", int32(c))
}

var tierNames = []string{"device", "host", "disk", "archive"}

// TierName returns the word for a tier; "" for TierNone and unknown tiers.
func TierName(tier int) string {
	if tier < 0 || tier >= len(tierNames) {
		return ""
	}
	return tierNames[tier]
}

// Error is a status with its details, as it crosses the boundary. Build one with the functions below, which fill in TierNone and RegionNone.
type Error struct {
	Code   Code
	Errno  int // 0, or an errno
	Tier   int // Tier*, TierNone where no tier is concerned
	Region int // index of the region concerned, or RegionNone
	Text   string
	Cause  error
}

// Error says what happened, where, and why.
func (e *Error) Error() string {
	var b strings.Builder
	if name := TierName(e.Tier); name != "" {
		fmt.Fprintf(&b, "%s tier: ", name)
	}
	if e.Region >= 0 {
		fmt.Fprintf(&b, "region %d: ", e.Region)
	}
	if e.Text != "" {
		b.WriteString(e.Text)
	} else {
		b.WriteString(e.Code.String())
	}
	b.WriteString(e.why())
	return b.String()
}

// Unwrap returns the cause, so that errors.Is(err, syscall.ENOSPC) works.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes two status errors of the same code equal for errors.Is if the target has only a code: errors.Is(err, &status.Error{Code: status.Closed})
// and errors.Is(err, status.Of(status.Closed)).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Text == "" && t.Cause == nil
}

// Of returns an error with only a code: for comparisons.
func Of(code Code) *Error { return &Error{Code: code, Tier: TierNone, Region: RegionNone} }

// New returns an error with a text.
func New(code Code, format string, args ...any) *Error {
	e := Of(code)
	e.Text = fmt.Sprintf(format, args...)
	return e
}

// Wrap returns an error with a text and a cause; the cause's errno, if it has one, becomes Errno.
// A nil cause is allowed.
func Wrap(code Code, cause error, format string, args ...any) *Error {
	e := New(code, format, args...)
	e.Cause = cause
	e.Errno = Errno(cause)
	return e
}

// AtTier returns a copy that names the tier.
func (e *Error) AtTier(tier int) *Error {
	c := *e
	c.Tier = tier
	return &c
}

// AtRegion returns a copy that names the region.
func (e *Error) AtRegion(region int) *Error {
	c := *e
	c.Region = region
	return &c
}

// Errno returns the errno that err wraps, 0 if none.
func Errno(err error) int {
	var no syscall.Errno
	if errors.As(err, &no) {
		return int(no)
	}
	return 0
}

// CodeOf returns the code of an error of the core; Internal if the error carries none.
func CodeOf(err error) Code {
	var known *Error
	if errors.As(err, &known) {
		return known.Code
	}
	return Internal
}
