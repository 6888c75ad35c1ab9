package tier

import "errors"

// Object names the bytes that a tier keeps as one piece. They are written once and do not change until the object is deleted.
type Object struct {
	ID     uint64 // names the object; it is never used again
	Offset int64  // where the object lies, in a tier whose room the engine assigns
	Bytes  int64
}

// Capabilities say what a tier can do. A transfer is chosen by them, never by the name of the tier.
type Capabilities struct {
	Addressable bool // the host can read and write the bytes where they lie: Bytes of a source or sink is not nil
	Assigned    bool // the engine assigns the offsets of objects; otherwise the tier finds room for an object by its ID
	Durable     bool // after Sync the objects survive the process
	Shared      bool // other processes can open the objects
	Listed      bool // List tells of the objects
	Conditional bool // Create refuses an object that there is already
	// Grain is the unit of the tier's room: objects begin and end at multiples of it. Reads may begin and end anywhere.
	Grain int64
}

// Errors of a tier that callers tell apart.
var (
	ErrExists   = errors.New("there is such an object already")
	ErrAbsent   = errors.New("there is no such object")
	ErrUnwanted = errors.New("the object is not needed any more")
)

// Objects is one tier's memory. Calls for different objects may run at once. Nothing renames an object, and nothing changes one that was committed:
// so an object store or a file that several ranks share can be a tier.
type Objects interface {
	Capabilities() Capabilities
	// Create begins an object. It fails with ErrExists if the tier is conditional and has the object. Writes fail with ErrUnwanted once wanted returns false;
	// nil: the object is always wanted.
	Create(o Object, wanted func() bool) (Sink, error)
	// Open gives access to a committed object.
	Open(o Object) (Source, error)
	// Delete removes an object. Its room may be used again at once. An object that is not there is no error.
	Delete(o Object) error
	// Sync returns when all objects that were committed before the call survive the loss of the process, in a tier that is durable.
	Sync() error
	// List calls visit for every committed object, in no particular order, until visit returns an error.
	List(visit func(Object) error) error
}

// Source gives the bytes of an object.
type Source interface {
	// Bytes returns the bytes where they lie; nil if the host cannot address them.
	Bytes() []byte
	// Read brings the bytes from an offset of the object on into memory. It tells of every part that has arrived, as an offset from the first byte read;
	// several goroutines may tell at once. arrived may be nil.
	Read(at int64, to []byte, arrived func(at, n int64)) error
}

// Sink takes the bytes of an object. Commit or Abort ends it.
type Sink interface {
	// Bytes returns the memory that the bytes are to be written to; nil if the host cannot address it.
	Bytes() []byte
	// Write takes bytes at an offset of the object. Offsets ascend. Bytes that are passed over have no particular value.
	Write(at int64, p []byte) error
	// Commit ends the object: it can be opened from now on.
	Commit() error
	// Abort gives the object up. Nothing of it can be opened.
	Abort() error
}
