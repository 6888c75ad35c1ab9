package tier

import "errors"

// Object names the bytes that a tier keeps as one piece. They are written once and do not change until the object is deleted.
type Object struct {
	ID     uint64 // names the object, from 1 on; it is never used again after a commit
	Offset int64  // where the object lies, in a tier whose room the engine assigns
	Bytes  int64
}

// Capabilities say what a tier can do. The tests of objects (package tiertest) choose their checks by them. A transfer does not ask for them yet: package path
// chooses by the methods that its source and sink have, and asks the cache whether a tier is a device or the disk.
type Capabilities struct {
	Addressable bool // the host can read and write the bytes where they lie: Bytes of a source or sink is not nil
	Assigned    bool // the engine assigns the offsets of objects; otherwise the tier finds room for an object by its ID
	Durable     bool // after Sync the objects survive the process
	Shared      bool // other processes can open the objects
	Listed      bool // List tells of the objects
	Conditional bool // of the sinks for one ID, one commits; Create or Commit of the others fails with ErrExists
	Tracked     bool // the tier knows which objects there are: Open fails with ErrAbsent for any other one
	// Grain is the unit of the tier's room: an object begins at a multiple of it, and takes whole ones, at least one. Reads and writes may begin and end
	// anywhere.
	Grain int64
}

// Errors of a tier that callers tell apart.
var (
	ErrExists   = errors.New("there is such an object already")
	ErrAbsent   = errors.New("there is no such object")
	ErrUnwanted = errors.New("the object is not needed any more")
	ErrRange    = errors.New("outside the object, or before bytes that were written already")
	ErrEnded    = errors.New("the object was committed or aborted already")
)

// Objects is one tier's memory. Calls for different objects may run at once. Nothing renames an object, and nothing changes one that was committed:
// so an object store or a file that several ranks share can be a tier.
//
// A tier that is not tracked relies on its caller: it opens only committed objects, keeps them apart, and creates each once. It may open or create
// neighbouring objects as one, to transfer them together.
type Objects interface {
	Capabilities() Capabilities
	// Create begins an object. Writes fail with ErrUnwanted once wanted returns false; nil: the object is always wanted. Several goroutines may call wanted.
	Create(o Object, wanted func() bool) (Sink, error)
	// Open gives access to a committed object.
	Open(o Object) (Source, error)
	// Delete removes an object, of which no read is running. Its room may be used again once Delete has returned. An object that is not there is no error.
	Delete(o Object) error
	// Sync returns when all objects that were committed before the call survive the loss of the process, in a tier that is durable. While there is an object
	// that does not, it fails: the caller deletes that object, or keeps the bytes elsewhere.
	Sync() error
	// List calls visit for every committed object, in no particular order, until visit returns an error, and returns that error. A tier that does not list
	// its objects calls it for none.
	List(visit func(Object) error) error
}

// Source gives the bytes of an object.
type Source interface {
	// Bytes returns the bytes where they lie; nil if the host cannot address them.
	Bytes() []byte
	// Read brings the bytes from an offset of the object on into memory. It tells of every part that has arrived, once, as an offset from the first byte
	// read; several goroutines may tell at once, and the last has told before Read returns. arrived may be nil. Of a tracked tier Read fails with ErrAbsent
	// once the object is deleted. Several goroutines may read at once.
	Read(at int64, to []byte, arrived func(at, n int64)) error
}

// Streamer is a Source that can bring bytes to buffers of the tier, for a reader that needs each of them once.
type Streamer interface {
	// MostStreamed is the most bytes that one range may have; 0: the tier has no such buffers.
	MostStreamed() int64
	// Stream reads so many ranges of the object, and calls take with the bytes of each, in any order and from several goroutines at once. The bytes stay until
	// take returns. After an error of a read, or of take, no further ranges are read. The error is the first one.
	Stream(ranges int, where func(i int) (at, n int64), take func(i int, p []byte) error) error
}

// Prover is a Source whose tier may lack bytes of the object, or have those of another one in their place, because its files can be damaged or mixed up.
type Prover interface {
	// Holds returns an error unless the tier has every byte of a range. It does not read them: a caller that would map memory for them asks first.
	Holds(at, n int64) error
	// Proves returns an error unless a range has bytes of this store. A caller that compares no checksums asks before it uses what it has read.
	Proves(at, n int64) error
}

// Sink takes the bytes of an object. One goroutine uses it. Commit or Abort ends it; calls of Write and Commit after that fail with ErrEnded.
type Sink interface {
	// Bytes returns the memory that the bytes are to be written to; nil if the host cannot address it.
	Bytes() []byte
	// Write takes bytes at an offset of the object, which is not before the end of the last write. Bytes that are passed over have no particular value;
	// a read of them may fail, unless they are fewer than 4 KiB between two writes. The padding of the object's last grain may be written too. After an
	// error the object cannot be committed.
	Write(at int64, p []byte) error
	// Commit ends the object: it can be opened from now on. After an error of Write or Commit there is no object.
	Commit() error
	// Abort gives the object up. Nothing of it can be opened. After the end of a sink it does nothing.
	Abort() error
}
