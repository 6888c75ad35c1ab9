package cuda

import "fmt"

// Result is what a call of the driver answers (CUresult). The numbers are the driver's.
type Result int32

// Results that have a meaning here.
const (
	Success              Result = 0
	InvalidValue         Result = 1
	OutOfMemory          Result = 2
	NotInitialized       Result = 3
	Deinitialized        Result = 4
	StubLibrary          Result = 34
	DeviceUnavailable    Result = 46
	NoDevice             Result = 100
	InvalidDevice        Result = 101
	InvalidImage         Result = 200
	InvalidContext       Result = 201
	NoBinaryForGPU       Result = 209
	UncorrectableECC     Result = 214
	InvalidPTX           Result = 218
	UncorrectableNVLink  Result = 220
	NoJITCompiler        Result = 221
	UnsupportedPTX       Result = 222
	Contained            Result = 226
	OperatingSystem      Result = 304
	InvalidHandle        Result = 400
	NotFound             Result = 500
	NotReady             Result = 600
	IllegalAddress       Result = 700
	LaunchOutOfResources Result = 701
	LaunchTimeout        Result = 702
	ContextIsDestroyed   Result = 709
	Assert               Result = 710
	AlreadyRegistered    Result = 712
	NotRegistered        Result = 713
	HardwareStackError   Result = 714
	IllegalInstruction   Result = 715
	MisalignedAddress    Result = 716
	InvalidAddressSpace  Result = 717
	InvalidPC            Result = 718
	LaunchFailed         Result = 719
	TensorMemoryLeak     Result = 721
	NotPermitted         Result = 800
	NotSupported         Result = 801
	SystemNotReady       Result = 802
	DriverMismatch       Result = 803
	CompatNotSupported   Result = 804
	MPSRemoteFailure     Result = 806
	MPSClientTerminated  Result = 810
	CaptureUnsupported   Result = 900
	CaptureInvalidated   Result = 901
	CaptureIsolation     Result = 905
	CaptureImplicit      Result = 906
	Unknown              Result = 999
)

// Error is a call of the driver that failed.
type Error struct {
	Call   string // "cuMemCreate"
	Result Result
	Name   string // "CUDA_ERROR_OUT_OF_MEMORY"
	Text   string // "out of memory"
}

// Error names the call, and the result in all three ways.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: result %d", e.Call, e.Result)
	}
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name, e.Result, e.Text)
}

// Sticky tells whether a result means that the context cannot be used any more: what the GPU wrote since the fault, and all that
// it holds, is worth nothing. Launches report faults of earlier work, so that any call may bring one.
func (r Result) Sticky() bool {
	switch r {
	case IllegalAddress, LaunchTimeout, Assert, HardwareStackError, IllegalInstruction, MisalignedAddress, InvalidAddressSpace,
		InvalidPC, LaunchFailed, TensorMemoryLeak: // a kernel did something impossible
		return true
	case UncorrectableECC, UncorrectableNVLink, Contained: // the hardware did
		return true
	case Deinitialized, InvalidContext, ContextIsDestroyed: // somebody reset the device, or the process ends
		return true
	case MPSRemoteFailure, MPSClientTerminated: // the server that shares the GPU ended us
		return true
	case Unknown: // also what the driver says when the GPU has fallen off the bus
		return true
	}
	return false
}

// recording tells whether a result means that a stream is being captured into a graph.
func (r Result) recording() bool { return r >= CaptureUnsupported && r <= 908 }
