// Package device is the one interface between the store and the memory of an accelerator: a cache that lies there, queues of
// copies and kernels, and host memory that the accelerator can reach at full speed. Package cuda implements it on a CUDA
// driver, package hostdevice on plain host memory, so that every policy runs and is tested without an accelerator.
//
// Nothing here waits for the accelerator but Mark.Wait. Work is put into lanes; what is put into one lane happens in order,
// what is put into two happens in any order unless a Mark of one is waited for in the other. Package hazard keeps the store's
// account of which marks a range of the cache has to wait for.
package device

import (
	"errors"
	"slices"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/model"
)

// Errors of devices, wrapped with the call and the place.
var (
	ErrUnavailable = errors.New("no usable accelerator")            // the text says why and what to do
	ErrMemory      = errors.New("the accelerator's memory is full") // work goes on with what there is
	ErrPinning     = errors.New("host memory cannot be pinned")     // it stays usable, more slowly
	ErrRecording   = errors.New("the stream is being captured into a graph")
	ErrLost        = errors.New("the accelerator's context is lost") // sticky: no byte that was read after it may be used
)

// Device is one accelerator. All methods are safe for concurrent use and may be called on any thread: what is current on the
// caller's thread stays as it is.
type Device interface {
	Name() string // "cuda:0 (NVIDIA H200)"
	Ordinal() int
	Place() Place

	// Reserve sets addresses aside for a cache of at most so many bytes. No memory is taken yet.
	Reserve(bytes int64) (Arena, error)
	// Memory is what the accelerator has free now, and in all.
	Memory() (free, total int64, err error)

	// Lane opens a queue of our own.
	Lane(Priority) (Lane, error)
	// Borrow is the queue behind a stream of the caller's: 0 and 1 are the legacy default stream, 2 the calling thread's own
	// default stream, anything else a handle. It costs nothing and need not be closed.
	Borrow(stream uint64) Lane

	// Pin makes a range of host memory reachable at full speed. Ranges that were pinned apart may lie side by side. Unpin takes
	// back exactly what one Pin pinned; nothing queued may touch it any more.
	Pin(m *memory.Mapping, off, n int64) error
	// Border says that a range will be pinned for another device: copies of this one end at its borders from now on, as the driver wants it
	// of all devices. Pin may follow.
	Border(m *memory.Mapping, off, n int64) error
	Unpin(m *memory.Mapping, off, n int64) error

	// Lost is nil, or ErrLost with its cause once the context has been lost: every later call returns the same at once.
	Lost() error
	// Close gives everything back. No work may be queued any more, no Arena in use.
	Close() error
}

// Place is where an accelerator hangs on the host.
type Place struct {
	Node     int     // the NUMA node of the host memory nearest to it; -1 if that is not known
	LinkRate float64 // bytes/s that its link carries in one direction, before protocol; 0 if that is not known
}

// Priority orders lanes of one direction against each other.
type Priority uint8

// From what somebody waits for to what nobody does.
const (
	Waited Priority = iota
	Ahead
	Behind
)

// Arena is the memory of a cache: one range of addresses of which a growing part has memory behind it.
type Arena interface {
	Base() Address
	// Mapped is how many bytes from Base on can be used. It changes only by Grow and Shrink.
	Mapped() int64
	// Grow takes the next piece of memory, of the implementation's size and never beyond the limit, and returns the new Mapped.
	// Work on what was mapped before goes on meanwhile. ErrMemory: there is none, and Mapped is unchanged.
	Grow(limit int64) (int64, error)
	// Shrink gives whole pieces back until at most so many bytes are mapped. Nothing that is queued may touch them.
	Shrink(to int64) (int64, error)
	Free() error
}

// Lane is a queue of work. A Lane of our own is used by one goroutine at a time.
type Lane interface {
	// Copy moves n bytes between any two places that the accelerator can address or that were pinned, and pageable host memory.
	// With pageable memory it may wait for the copy; a pinned range must have been pinned in one piece.
	Copy(to, from Address, n int64) error
	// Gather fills a slot from arrays, Scatter arrays from a slot: all pieces by as few launches as possible. With sums, the
	// checksums of the slot's bytes are taken in the same pass. The arrays must stay until a mark behind it has passed.
	Gather(pieces []Piece, sums bool) (Sums, error)
	Scatter(pieces []Piece) error
	// Hash takes checksums of what lies in slots, or anywhere else in memory of the device, at any address.
	Hash(pieces []Piece) (Sums, error)
	// Mark is passed when everything queued so far has happened.
	Mark() (Mark, error)
	// Stamp is a point of which the accelerator notes when it gets there. It costs more than a Mark.
	Stamp() (Stamp, error)
	// After makes everything queued from now on wait for the mark. It costs the host nothing but the call.
	After(Mark) error
	Close() error // of a lane of our own; what is queued still happens
}

// Piece is one region: Bytes dense bytes at Slot, and the same bytes at Mem. Mem.Base is an address that the accelerator can
// reach, unless Host says that it is pageable memory of the host. Slots are multiples of 64 bytes, Mem.Base is anything.
type Piece struct {
	Slot  Address
	Bytes int64
	Mem   model.Strided
	Host  bool
}

// Mark is a point in a lane. Marks are counted: who keeps one calls Keep, and Drop once for every Keep and for its making.
type Mark interface {
	Passed() (bool, error) // never waits
	Seen() (bool, error)   // Passed that asks the driver seldom: what has just passed may not have been seen yet
	Wait() error           // blocks the calling thread without burning it
	Of(Lane) bool          // whether it was made in that lane, or one behind the same stream: there nothing waits for it
	Keep() Mark
	Drop()
}

// Stamp is a point in a lane, with the time at which everything queued before it had happened.
type Stamp interface {
	// Since is how many nanoseconds lie between an earlier stamp of the same device and this one; false: one of them has not been passed. It never waits.
	Since(earlier Stamp) (ns int64, passed bool, err error)
	Drop() // once; the stamp is not used any more
}

// Sums are checksums that the accelerator takes (package checksum's definition). Those of a Hash may be taken once a mark behind it has
// passed, those of a Gather lie on the accelerator until they are fetched. Take gives the memory back, as does Discard; neither may be
// called before a mark behind all that was queued for them has passed.
type Sums interface {
	Fetch(Lane) error // queues the way to the host in a lane that is behind the Gather
	Take() []uint64   // by piece
	Discard()
}

// Nodes are the NUMA nodes that devices hang on, ascending and each once, as far as they are known.
func Nodes(devices []Device) (nodes []int) {
	for _, d := range devices {
		if node := d.Place().Node; node >= 0 {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
