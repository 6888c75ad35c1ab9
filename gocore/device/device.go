// Package device is the one interface between the store and a device: a cache in its memory, queues of copies and kernels, and host memory that it
// can reach at full speed. Package cuda implements it on a CUDA driver, package hostdevice on plain host memory. So every policy runs and is tested
// without an accelerator.
//
// Only Event.Wait waits for the device. Work is queued in lanes. Work in one lane runs in order; work in two lanes runs in any order unless one lane
// waits for an Event of the other. Package hazard records which events a range of the cache has to wait for.
package device

import (
	"errors"
	"slices"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/model"
)

// Errors of devices, wrapped with the call and the device.
var (
	ErrUnavailable = errors.New("no usable accelerator")            // the text says why and what to do
	ErrMemory      = errors.New("the accelerator's memory is full") // the caller goes on with the memory that it has
	ErrPinning     = errors.New("host memory cannot be pinned")     // it stays usable, at a lower rate
	ErrRecording   = errors.New("the stream is being captured into a graph")
	ErrLost        = errors.New("the accelerator's context is lost") // sticky: no byte read after it may be used
)

// Device is one accelerator. All methods are safe for concurrent use and may be called on any thread. They leave the current context of the caller's
// thread as it is.
type Device interface {
	Name() string // "cuda:0 (NVIDIA H200)"
	Ordinal() int
	Place() Place

	// Reserve reserves addresses for a cache of at most that many bytes. It allocates no memory yet.
	Reserve(bytes int64) (Arena, error)
	// Memory is how many bytes of device memory are free now, and in total.
	Memory() (free, total int64, err error)

	// Lane creates a queue of our own.
	Lane(Priority) (Lane, error)
	// Borrow is the queue of a caller's stream: 0 and 1 are the legacy default stream, 2 the calling thread's per-thread default stream, other values
	// a handle. It costs nothing and need not be closed.
	Borrow(stream uint64) Lane

	// Pin makes a range of host memory reachable at full speed. Ranges pinned by separate calls may be adjacent. Unpin takes exactly the range of one
	// Pin; no queued work may touch it any more.
	Pin(m *memory.Mapping, off, n int64) error
	// Border tells that a range will be pinned for another device. From now on copies of this device end at its borders, as the driver requires for
	// all devices. Pin may follow.
	Border(m *memory.Mapping, off, n int64) error
	Unpin(m *memory.Mapping, off, n int64) error

	// Lost is nil, or ErrLost with its cause once the context is lost: every later call then returns that at once.
	Lost() error
	// Close frees everything. No work may be queued any more and no Arena in use.
	Close() error
}

// Place is where a device is attached to the host.
type Place struct {
	Node     int     // the NUMA node of the nearest host memory; -1 if unknown
	LinkRate float64 // bytes/s of its link in one direction, before protocol; 0 if unknown
}

// Priority orders lanes of one direction among each other.
type Priority uint8

// From work that a caller waits for to work that no caller waits for.
const (
	Waited Priority = iota
	Ahead
	Behind
)

// Arena is the memory of a cache: one range of addresses of which a growing part is mapped to memory.
type Arena interface {
	Base() Address
	// Mapped is how many bytes from Base on are usable. Only Grow and Shrink change it.
	Mapped() int64
	// Grow maps the next piece of memory and returns the new Mapped. The implementation chooses the size, never beyond the limit. Work on the memory
	// mapped before continues meanwhile. ErrMemory: no memory is free, and Mapped is unchanged.
	Grow(limit int64) (int64, error)
	// Shrink unmaps whole pieces until at most that many bytes are mapped. No queued work may touch them.
	Shrink(to int64) (int64, error)
	Free() error
}

// Lane is a queue of work. One goroutine at a time uses a Lane of our own.
type Lane interface {
	// Copy moves n bytes between any two addresses that the device can reach or that are pinned, and pageable host memory. With pageable memory it
	// may wait for the copy. A pinned range must have been pinned by one Pin.
	Copy(to, from Address, n int64) error
	// CopyAll is Copy of several ranges, in fewer calls of the driver. They do not overlap, host memory among them is pinned, and their order among each other is open.
	CopyAll(all []Move) error
	// Gather fills a slot from arrays, Scatter fills arrays from a slot: all pieces in as few launches as possible. With sums, the same pass computes
	// the checksums of the slot's bytes. The arrays must stay until a later event has passed.
	Gather(pieces []Piece, sums bool) (Sums, error)
	Scatter(pieces []Piece) error
	// Hash computes checksums of slots, or of any other device memory, at any address.
	Hash(pieces []Piece) (Sums, error)
	// Encode writes containers of package codec, in as few launches as possible, without their headers: the host adds these with codec.SealTables
	// once it has the bytes. Nothing behind a container's length is written. Containers, plain bytes and ScratchFor(all) bytes of scratch memory are in
	// use until an event behind the call has passed. ErrCodec: the device has no kernels for it.
	Encode(all []Container, scratch Address) (Lengths, error)
	// Decode writes the plain bytes of containers. It does not read the headers, whose content the caller gives, and trusts no byte of the rest:
	// a container whose tables, payloads or chunks' hashes are wrong is in Faults. Its plain bytes may then be anything; no other memory is touched.
	Decode(all []Container, scratch Address) (Faults, error)
	// Dedup de-duplicates a checkpoint in device memory against those before it of its lineage, whose state is in device memory too. It leaves the first
	// occurrences and the metadata in Result. The host does not wait. The regions, the state and all memory of c are in use until an event behind the
	// call has passed. A call that fails with anything but ErrDeduplication, ErrDedup or ErrRecording, or whose work is not known to have run, leaves the state
	// in device memory changed: the lineage is made anew. ErrDedup: the device has no kernels for it.
	Dedup(c *Deduplication) (Found, error)
	// GatherFirsts writes the first occurrences that a Dedup with Apart has found into its result. It is called at most once, before the scratch memory is used for anything
	// else.
	GatherFirsts(c *Deduplication) error
	// Event passes when all work queued so far has run.
	Event() (Event, error)
	// Stamp is a point at which the device records the time. It costs more than an Event.
	Stamp() (Stamp, error)
	// After makes all work queued from now on wait for the event. The host does not wait.
	After(Event) error
	Close() error // of a lane of our own; queued work still runs
}

// Move is a copy of bytes from one address to another.
type Move struct {
	To, From Address
	Bytes    int64
}

// Piece is one region: Bytes dense bytes at Slot, and the same bytes at Mem. The device can reach the address Mem.Base, unless Host says that it is
// pageable host memory. Slots are multiples of 64 bytes; Mem.Base is arbitrary.
type Piece struct {
	Slot  Address
	Bytes int64
	Mem   model.Strided
	Host  bool
}

// Event is a point in a lane. Events are reference-counted: their holder calls Keep for each further reference, and Drop once per Keep and once for the
// creation.
type Event interface {
	Passed() (bool, error) // never waits
	Seen() (bool, error)   // Passed that rarely asks the driver: it may miss an event that has just passed
	Wait() error           // blocks the calling thread without spinning
	Of(Lane) bool          // whether it was made in that lane or stream: work there need not wait for it
	Keep() Event
	Drop()
}

// Stamp is a point in a lane, with the time at which all work queued before it had run.
type Stamp interface {
	// Since is the number of nanoseconds between an earlier stamp of the same device and this one; false: one of them has not passed yet. It never
	// waits.
	Since(earlier Stamp) (ns int64, passed bool, err error)
	Drop() // called once; the stamp must not be used afterwards
}

// Sums are checksums computed by the device (as package checksum defines them). Those of a Hash may be taken once a later event has passed. Those of a
// Gather stay on the device until they are fetched. Take frees their memory, and so does Discard. All may be called only after an event has passed
// that is behind all work queued for them.
type Sums interface {
	Fetch(Lane) error // queues the copy to the host in a lane that is behind the Gather
	Renew()           // gives up the host memory of an earlier Fetch, which nothing tells the end of; the next one takes other memory
	Leaves() []uint64 // hashes of the leaves of all pieces with more than one, in order, before Take; nil: none, or not known
	Take() []uint64   // by piece
	Discard()
}

// Nodes are the known NUMA nodes of devices, ascending, each once.
func Nodes(devices []Device) (nodes []int) {
	for _, d := range devices {
		if node := d.Place().Node; node >= 0 {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
