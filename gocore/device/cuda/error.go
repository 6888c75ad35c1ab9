package cuda

import (
	"errors"
	"fmt"
)

// Code is a result of the driver, as it numbers them.
type Code int32

// The results that are told apart.
const (
	InvalidValue        Code = 1
	OutOfMemory         Code = 2
	NotInitialized      Code = 3
	Deinitialized       Code = 4
	StubLibrary         Code = 34
	DeviceUnavailable   Code = 46
	NoDevice            Code = 100
	InvalidDevice       Code = 101
	InvalidImage        Code = 200
	InvalidContext      Code = 201
	NoBinary            Code = 209 // the image has nothing for this device
	UncorrectableECC    Code = 214
	UncorrectableNVLink Code = 220
	Contained           Code = 226
	InvalidHandle       Code = 400
	NotFound            Code = 500
	NotReady            Code = 600 // never seen outside a Driver: QueryEvent says it with a bool
	IllegalAddress      Code = 700
	LaunchTimeout       Code = 702
	ContextDestroyed    Code = 709
	Assert              Code = 710
	AlreadyRegistered   Code = 712
	NotRegistered       Code = 713
	HardwareStack       Code = 714
	IllegalInstruction  Code = 715
	MisalignedAddress   Code = 716
	InvalidAddressSpace Code = 717
	InvalidPC           Code = 718
	LaunchFailed        Code = 719
	TensorMemoryLeak    Code = 721
	NotPermitted        Code = 800
	NotSupported        Code = 801
	SystemNotReady      Code = 802
	DriverMismatch      Code = 803
	CompatNotSupported  Code = 804
	MPSRemoteFailure    Code = 806
	MPSClientTerminated Code = 810
	Capturing           Code = 900 // not permitted while the stream is captured into a graph
	CaptureWrongThread  Code = 908 // the last of those about capturing
	Unknown             Code = 999
)

// Error is a call of the driver that failed.
type Error struct {
	Call string // "cuMemCreate", or the method of Driver where that is no driver's call
	Code Code
	Name string // "CUDA_ERROR_OUT_OF_MEMORY", if the driver gave one
	Text string // "out of memory", likewise
}

// Error names the call and the result in all the ways that are known.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: result %d", e.Call, e.Code)
	if e.Name != "" {
		text = fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// Is tells whether err is the driver's result of that number.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// Sticky tells whether a result means that the context cannot be used any more: what the GPU wrote since the fault, and all that
// it holds, is worth nothing. Any call may bring one, as it reports faults of earlier work.
func (c Code) Sticky() bool {
	switch c {
	case IllegalAddress, LaunchTimeout, Assert, HardwareStack, IllegalInstruction, MisalignedAddress, InvalidAddressSpace,
		InvalidPC, LaunchFailed, TensorMemoryLeak: // a kernel, ours or somebody else's, did something impossible
		return true
	case UncorrectableECC, UncorrectableNVLink, Contained: // the hardware did
		return true
	case Deinitialized, InvalidContext, ContextDestroyed: // somebody reset the device, or the process ends
		return true
	case MPSRemoteFailure, MPSClientTerminated: // the server that shares the GPU ended us
		return true
	case Unknown: // also what the driver says when the GPU has fallen off the bus
		return true
	}
	return false
}

// recording tells whether a result says that a stream is being captured into a graph.
func (c Code) recording() bool { return c >= Capturing && c <= CaptureWrongThread }
