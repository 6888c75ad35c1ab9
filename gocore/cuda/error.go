package cuda

import (
	"errors"
	"fmt"
)

// Code is a result of the driver, as it numbers them.
type Code int32

// The results that are told apart.
const (
	InvalidValue      Code = 1
	OutOfMemory       Code = 2
	NotInitialized    Code = 3
	NoDevice          Code = 100
	InvalidDevice     Code = 101
	InvalidImage      Code = 200
	InvalidContext    Code = 201
	NoBinary          Code = 209 // the image has nothing for this device
	InvalidHandle     Code = 400
	NotFound          Code = 500
	NotReady          Code = 600 // never seen outside a Driver: QueryEvent says it with a bool
	IllegalAddress    Code = 700 // sticky
	AlreadyRegistered Code = 712
	NotRegistered     Code = 713
	LaunchFailed      Code = 719 // sticky
	NotPermitted      Code = 800
	NotSupported      Code = 801
	Capturing         Code = 900 // not permitted while the stream is captured into a graph
)

// Error is a call of the driver that failed.
type Error struct {
	Call string // the method of Driver
	Code Code
	Text string // the driver's own name for it, if it gave one
}

func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("%s failed with %d", e.Call, e.Code)
	}
	return fmt.Sprintf("%s failed with %s (%d)", e.Call, e.Text, e.Code)
}

// Is tells whether err is the driver's result of that number.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
