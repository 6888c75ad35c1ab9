// Package cuda implements the device interface on a CUDA driver. It is pure Go. The driver is an interface with two implementations: libcuda, the
// real one, opened at run time, and double, its functions on host memory, with configurable streams, delays and faults. So this code itself runs
// under the race detector on a machine without a GPU.
package cuda

import (
	"unsafe"

	"velocpy/gocore/device"
)

// Handles of the driver. The zero value is no handle, except that Stream 0 is the legacy default stream.
type (
	Context  uintptr
	Stream   uintptr
	Event    uintptr
	Memory   uintptr // an allocation that can be mapped
	Module   uintptr
	Function uintptr
	Pointer  = uintptr
)

// Predefined streams of the driver.
const (
	LegacyStream    Stream = 1
	PerThreadStream Stream = 2
)

// Attribute is a device attribute by the driver's number.
type Attribute int32

// The attributes in use.
const (
	ComputeMajor  Attribute = 75
	ComputeMinor  Attribute = 76
	Processors    Attribute = 16
	PCIDomain     Attribute = 50
	PCIBus        Attribute = 33
	PCIDevice     Attribute = 34
	SupportsVMM   Attribute = 102
	HostNUMANode  Attribute = 134
	CopyEngines   Attribute = 40
	ReadsPageable Attribute = 88
)

// Driver is the part of the CUDA driver that velocpy uses, one method per driver function. Every method returns nil or a *Error. Methods with a
// Context make it current on the calling thread for the duration of the call and restore the previous one. All are safe for concurrent use.
type Driver interface {
	Version() (int, error) // 13000 for CUDA 13.0
	Devices() (int, error)
	DeviceName(device int) (string, error)
	DeviceUUID(device int) ([16]byte, error)
	DeviceAttribute(Attribute, int) (int, error)

	RetainPrimary(device int) (Context, error)
	ReleasePrimary(device int) error
	MemoryInfo(Context) (free, total int64, err error)

	Granularity(device int) (int64, error) // of physical memory that can be mapped
	ReserveAddress(bytes, align int64) (Pointer, error)
	FreeAddress(Pointer, int64) error
	CreateMemory(c Context, device int, bytes int64) (Memory, error)
	ReleaseMemory(Memory) error
	Map(Pointer, int64, Memory) error
	Unmap(Pointer, int64) error
	SetAccess(at Pointer, bytes int64, device int) error

	Register(c Context, at unsafe.Pointer, bytes int64) error
	Unregister(c Context, at unsafe.Pointer) error
	AllocateHost(c Context, bytes int64) (unsafe.Pointer, error) // pinned, reachable by kernels at the same address
	FreeHost(c Context, at unsafe.Pointer) error

	CreateStream(c Context, priority int) (Stream, error) // a non-blocking stream: it does not wait for the legacy default stream
	StreamPriorities(Context) (least, greatest int, err error)
	DestroyStream(Context, Stream) error
	StreamIsCapturing(Context, Stream) (bool, error)
	StreamWaitEvent(Context, Stream, Event) error

	CreateEvent(c Context, blocking bool) (Event, error) // without timing; waiting threads block, or spin
	CreateTimer(Context) (Event, error)                  // an event that records the time; threads do not wait for it
	// ElapsedTime is the time between the records of two timers; false: one of them is not reached yet.
	ElapsedTime(c Context, from, to Event) (ns int64, done bool, err error)
	DestroyEvent(Context, Event) error
	RecordEvent(Context, Event, Stream) error
	QueryEvent(Context, Event) (done bool, err error)
	SynchronizeEvent(Context, Event) error

	Copy(c Context, to, from Pointer, bytes int64, s Stream) error
	// CopyAll queues copies, each as Copy does, in any order among each other, by few calls. s is a stream of CreateStream. After an error some of them may be queued.
	CopyAll(c Context, all []device.Move, s Stream) error

	LoadModule(c Context, image []byte) (Module, error)
	UnloadModule(Context, Module) error
	Function(c Context, m Module, name string) (Function, error)
	// Launch runs a kernel with one parameter: a struct of up to 32764 bytes, which is read during the call.
	Launch(c Context, f Function, blocks, threads, shared int, s Stream, parameter []byte) error
}
