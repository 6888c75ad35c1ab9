// Package record holds the digests of the bytes that a lineage's checkpoints have stored, with the place of each (Tan et al., ICPP'23, section 2.1: the
// historical record of unique hashes).
//
// It is a hash table of fixed capacity with open addressing, in buckets of 8 slots. A slot is a digest of 16 bytes and a place of 16 bytes; a bucket has
// 8 bytes more. The table compares whole digests. Which digests it holds depends on the order of the calls alone, not on the slots they got: a GPU may fill
// the slots in any order once it has chosen the digests to insert.
package record

import (
	"maps"
	"math/bits"
	"slices"
	"unsafe"

	"velocpy/gocore/reduction/digest"
)

// Place says where bytes are stored: from Offset on in the first occurrences of a checkpoint's difference.
type Place struct {
	Checkpoint uint32
	Offset     uint64 // below 2^48
	Bytes      uint64 // below 2^48
}

// Limits of a Place.
const (
	MaxCheckpoint = 1<<32 - 2
	MaxBytes      = 1<<48 - 1
)

const slots = 8

// bucket is the unit of the table. Its digests come first, so that a search that ends in them reads two cache lines.
type bucket struct {
	keys   [slots]digest.Digest
	places [slots]packed
	// passed counts the entries that found the bucket full and went on to a later one: where it is 0 a search ends. Removing an entry takes its counts
	// back, so that the table needs no tombstones and never degrades.
	passed uint32
	used   uint8 // bit i is set if slot i has an entry
}

const bucketBytes = int64(unsafe.Sizeof(bucket{}))

// Record is the table. It is for one goroutine at a time.
type Record struct {
	buckets  []bucket
	length   int
	capacity int
	held     map[uint32]bool // checkpoints that may have entries
	last     uint32          // checkpoint of the last insertion, if there is one
	inserted bool            // since the last removal
}

// packed is a Place in two words: offset and the length's low 16 bits; the length's high 32 bits and the checkpoint.
type packed struct{ a, b uint64 }

func pack(p Place) packed {
	return packed{p.Offset | p.Bytes<<48, p.Bytes>>16<<32 | uint64(p.Checkpoint)}
}

func (p packed) place() Place {
	return Place{Checkpoint: uint32(p.b), Offset: p.a & MaxBytes, Bytes: p.a>>48 | p.b>>32<<16}
}

// New returns an empty record that takes at most so many bytes of memory. It holds 0.8 entries per slot; less than a bucket holds none.
func New(memory int64) *Record {
	n := max(memory, 0) / bucketBytes
	return &Record{buckets: make([]bucket, n), capacity: int(n * slots * 4 / 5), held: map[uint32]bool{}}
}

// Memory returns the bytes that a record needs to hold so many entries.
func Memory(entries int) int64 {
	slotsNeeded := (int64(entries)*5 + 3) / 4
	return (slotsNeeded + slots - 1) / slots * bucketBytes
}

// Len is the number of entries; Cap is the most it can have.
func (r *Record) Len() int { return r.length }

// Cap is the most entries that the record can have.
func (r *Record) Cap() int { return r.capacity }

// Find returns the place of a digest whose bytes have the given length. An entry of the same digest and another length is a collision and is not found.
func (r *Record) Find(d digest.Digest, length uint64) (Place, bool) {
	at := r.search(d)
	if at == nil {
		return Place{}, false
	}
	p := at.place()
	return p, p.Bytes == length
}

// Has tells whether there is an entry for the digest, of any length.
func (r *Record) Has(d digest.Digest) bool {
	return r.search(d) != nil
}

func (r *Record) home(d digest.Digest) int {
	hash := (d.Lo ^ bits.RotateLeft64(d.Hi, 32)) * 0x9e3779b97f4a7c15
	at, _ := bits.Mul64(hash, uint64(len(r.buckets)))
	return int(at)
}

func (r *Record) after(at int) int {
	if at++; at == len(r.buckets) {
		return 0
	}
	return at
}

// search returns the place of a digest, or nil.
func (r *Record) search(d digest.Digest) *packed {
	if r.length == 0 {
		return nil
	}
	at := r.home(d)
	for range r.buckets { // all buckets may have been passed, after removals
		b := &r.buckets[at]
		for i := range b.keys {
			if b.keys[i] == d && b.used>>i&1 == 1 {
				return &b.places[i]
			}
		}
		if b.passed == 0 {
			break
		}
		at = r.after(at)
	}
	return nil
}

// Outcome is what became of an insertion.
type Outcome uint8

// The outcomes. Refused costs only ratio: the bytes are stored again when they occur again.
const (
	Added Outcome = iota
	Present
	Refused
)

// Insert adds an entry, unless the digest has one, which stays, or the record is full.
func (r *Record) Insert(d digest.Digest, p Place) Outcome {
	if r.Has(d) {
		return Present
	}
	if r.length >= r.capacity || p.Checkpoint > MaxCheckpoint || p.Offset > MaxBytes || p.Bytes > MaxBytes {
		return Refused
	}
	at := r.home(d)
	for r.buckets[at].used == 1<<slots-1 {
		r.buckets[at].passed++
		at = r.after(at)
	}
	b := &r.buckets[at]
	i := bits.TrailingZeros8(^b.used)
	b.keys[i], b.places[i] = d, pack(p)
	b.used |= 1 << i
	r.length++
	r.hold(p.Checkpoint)
	return Added
}

// hold notes that a checkpoint has entries; mostly it is the checkpoint of the call before.
func (r *Record) hold(checkpoint uint32) {
	if !r.inserted || r.last != checkpoint {
		r.held[checkpoint] = true
		r.last, r.inserted = checkpoint, true
	}
}

// Forget removes the entries of checkpoints. If there are any, it reads the whole table.
func (r *Record) Forget(checkpoints ...uint32) {
	gone := make(map[uint32]bool, len(checkpoints))
	for _, c := range checkpoints {
		if r.held[c] {
			gone[c] = true
		}
	}
	if len(gone) > 0 {
		r.sweep(func(c uint32) bool { return gone[c] })
	}
}

// Checkpoints returns the checkpoints that may have entries, in ascending order.
func (r *Record) Checkpoints() []uint32 { return slices.Sorted(maps.Keys(r.held)) }

// Expire removes the entries of checkpoints below oldest. If there are any, it reads the whole table.
func (r *Record) Expire(oldest uint32) {
	for c := range r.held {
		if c < oldest {
			r.sweep(func(c uint32) bool { return c < oldest })
			return
		}
	}
}

// Clear removes all entries.
func (r *Record) Clear() {
	clear(r.buckets)
	clear(r.held)
	r.length, r.inserted = 0, false
}

func (r *Record) sweep(gone func(checkpoint uint32) bool) {
	for at := range r.buckets {
		b := &r.buckets[at]
		for i, p := range b.places {
			if b.used>>i&1 == 1 && gone(p.place().Checkpoint) {
				for passed := r.home(b.keys[i]); passed != at; passed = r.after(passed) {
					r.buckets[passed].passed--
				}
				b.used &^= 1 << i
				r.length--
			}
		}
	}
	for c := range r.held {
		if gone(c) {
			delete(r.held, c)
		}
	}
	r.inserted = false
}
