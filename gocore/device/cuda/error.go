package cuda

import (
	"errors"
	"fmt"
)

// Code is a result of the driver by its number.
type Code int32

// The results that the code distinguishes.
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
	NoBinary            Code = 209 // the image has no code for this device
	UncorrectableECC    Code = 214
	UncorrectableNVLink Code = 220
	Contained           Code = 226
	InvalidHandle       Code = 400
	NotFound            Code = 500
	NotReady            Code = 600 // never leaves a Driver: QueryEvent returns a bool instead
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
	CaptureWrongThread  Code = 908 // the last of the results about capturing
	Unknown             Code = 999
)

// Error is a failed call of the driver.
type Error struct {
	Call string // "cuMemCreate", or the method of Driver if there is no such driver call
	Code Code
	Name string // "CUDA_ERROR_OUT_OF_MEMORY", if the driver gave a name
	Text string // "out of memory", likewise
}

// Error contains the call and all known forms of the result.
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

// Is tells whether err is the driver's result with that number.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// Sticky tells whether a result means that the context is unusable: device memory, and all bytes written by the GPU since the fault, are invalid. Any
// call may return one, since it reports faults of earlier work.
func (c Code) Sticky() bool {
	switch c {
	case IllegalAddress, LaunchTimeout, Assert, HardwareStack, IllegalInstruction, MisalignedAddress, InvalidAddressSpace,
		InvalidPC, LaunchFailed, TensorMemoryLeak: // a kernel, ours or the application's, made an invalid access
		return true
	case UncorrectableECC, UncorrectableNVLink, Contained: // a hardware error
		return true
	case Deinitialized, InvalidContext, ContextDestroyed: // the device was reset, or the process is exiting
		return true
	case MPSRemoteFailure, MPSClientTerminated: // the MPS server terminated this client
		return true
	case Unknown: // also the driver's result when the GPU has fallen off the bus
		return true
	}
	return false
}

// recording tells whether a result means that a stream is being captured into a graph.
func (c Code) recording() bool { return c >= Capturing && c <= CaptureWrongThread }
