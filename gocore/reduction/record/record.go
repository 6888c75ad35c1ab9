// Package record holds the digests of the bytes that a lineage's checkpoints have stored, with the place of each (Tan et al., ICPP'23, section 2.1: the
// historical record of unique hashes).
//
// It is a hash table of fixed capacity with open addressing, in buckets of 8 slots. A slot is a digest of 16 bytes and a place of 16 bytes. The table
// compares whole digests. Which digests it holds depends on the order of the calls alone, not on the slots they got: a GPU may fill the slots in any order
// once it has chosen the digests to insert.
package record

import (
	"math/bits"

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

const (
	slots = 8
	// bucketBytes counts 8 slots and the bucket's counter of overflows.
	bucketBytes = slots*32 + 4
)

// Record is the table. It is for one goroutine at a time.
type Record struct {
	keys   []digest.Digest
	places []packed
	// passed counts, per bucket, the entries that found it full and went on to a later one: where it is 0 a search ends. Removing an entry takes its
	// counts back, so that the table needs no tombstones and never degrades.
	passed   []uint32
	buckets  uint64
	length   int
	capacity int
	held     map[uint32]int // entries per checkpoint
}

// packed is a Place in two words: offset and the length's low 16 bits; the length's high 32 bits and the checkpoint's number + 1. A low half of 0 in the
// second word marks an empty slot.
type packed struct{ a, b uint64 }

func pack(p Place) packed {
	return packed{p.Offset | p.Bytes<<48, p.Bytes>>16<<32 | uint64(p.Checkpoint+1)}
}

func (p packed) empty() bool { return uint32(p.b) == 0 }

func (p packed) place() Place {
	return Place{Checkpoint: uint32(p.b) - 1, Offset: p.a & MaxBytes, Bytes: p.a>>48 | p.b>>32<<16}
}

// New returns an empty record that takes at most so many bytes of memory. It holds 0.8 entries per slot; less than a bucket holds none.
func New(memory int64) *Record {
	n := max(memory, 0) / bucketBytes
	return &Record{
		keys: make([]digest.Digest, n*slots), places: make([]packed, n*slots), passed: make([]uint32, n),
		buckets: uint64(n), capacity: int(n * slots * 4 / 5), held: map[uint32]int{},
	}
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
	at, ok := r.search(d)
	if !ok {
		return Place{}, false
	}
	p := r.places[at].place()
	return p, p.Bytes == length
}

// Has tells whether there is an entry for the digest, of any length.
func (r *Record) Has(d digest.Digest) bool {
	_, ok := r.search(d)
	return ok
}

func (r *Record) home(d digest.Digest) uint64 {
	hash := (d.Lo ^ bits.RotateLeft64(d.Hi, 32)) * 0x9e3779b97f4a7c15
	bucket, _ := bits.Mul64(hash, r.buckets)
	return bucket
}

func (r *Record) search(d digest.Digest) (int, bool) {
	if r.length == 0 {
		return 0, false
	}
	bucket := r.home(d)
	for range r.buckets { // all buckets may have been passed, after removals
		for at := int(bucket * slots); at < int(bucket*slots+slots); at++ {
			if r.keys[at] == d && !r.places[at].empty() {
				return at, true
			}
		}
		if r.passed[bucket] == 0 {
			break
		}
		bucket = r.after(bucket)
	}
	return 0, false
}

func (r *Record) after(bucket uint64) uint64 {
	if bucket++; bucket == r.buckets {
		return 0
	}
	return bucket
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
	bucket := r.home(d)
	at := r.free(bucket)
	for ; at < 0; at = r.free(bucket) {
		r.passed[bucket]++
		bucket = r.after(bucket)
	}
	r.keys[at], r.places[at] = d, pack(p)
	r.length++
	r.held[p.Checkpoint]++
	return Added
}

// free returns an empty slot of a bucket, or -1.
func (r *Record) free(bucket uint64) int {
	for at := int(bucket * slots); at < int(bucket*slots+slots); at++ {
		if r.places[at].empty() {
			return at
		}
	}
	return -1
}

// Forget removes the entries of a checkpoint. If there are any, it reads the whole table.
func (r *Record) Forget(checkpoint uint32) {
	if r.held[checkpoint] > 0 {
		r.sweep(func(c uint32) bool { return c == checkpoint })
	}
}

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
	clear(r.places)
	clear(r.passed)
	clear(r.held)
	r.length = 0
}

func (r *Record) sweep(gone func(checkpoint uint32) bool) {
	for at, p := range r.places {
		if p.empty() || !gone(p.place().Checkpoint) {
			continue
		}
		for bucket := r.home(r.keys[at]); bucket != uint64(at/slots); bucket = r.after(bucket) {
			r.passed[bucket]--
		}
		r.places[at] = packed{}
		r.length--
		if c := p.place().Checkpoint; r.held[c] > 1 {
			r.held[c]--
		} else {
			delete(r.held, c)
		}
	}
}
