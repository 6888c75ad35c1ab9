// Package tiertest is the conformance suite of tier.Objects, and what it needs: a tier in a map, which is the model of an object store, and a double that
// injects faults into any tier. The suite holds for every implementation, and finds out by itself what a tier can do: its capabilities have to say the same.
//
// # Tiers that are not there yet
//
// The interface asks nothing of a tier that these two cannot do.
//
// An object store (S3 and its like). Create begins a multipart upload, or nothing while less than one part has been written. Write gathers parts of at least
// 5 MiB, which works because offsets ascend; the gaps are filled with zeros. Commit completes the upload on the condition that the key is not there
// (If-None-Match: *): Conditional, and the loser learns it at Commit. Abort aborts the upload; uploads that a crash has left are removed by a rule of the
// bucket, for no call can open them. Open asks for the size of the key (Tracked). Read is one ranged get, or several at once, each of which tells of its
// arrivals. Delete is a delete; Sync has nothing to do; List follows the pages. Nothing is renamed, nothing is changed. Assigned and Addressable are false, and
// Grain is 1. Bytes that are wanted no more end the upload between two parts.
//
// One file of many ranks. The file is the room, and the leader of a group assigns the ranks' ranges in it: Assigned, with the block of the file system or
// its stripe as Grain, so that no two ranks write into one. Create checks the range; Write is a write at an offset; Commit leaves the bytes where they are.
// The objects are found by the index of the file, which the leader writes behind them: Sync is a sync of each rank's descriptor, a barrier of the group, and
// then the index with its sync. Before the index is there, a crash leaves a file without objects: committed and not synced vanish together. With an index in
// memory the tier is Tracked and Listed; a rank that has only its own ranges says neither. Delete frees a range when the index that lacks it has landed, so
// that it may last as long as a Sync. The file is never renamed: its name says the step, and the index says whether it is complete. Ranks that share objects
// read them by descriptors of their own: Shared.
//
// What the interface does not say yet: objects whose size is not known at Create (an encoder's) reserve their largest size in an assigned tier, and tell the
// real one to whoever keeps the record of the object; Sync is for the whole tier, not for one object.
package tiertest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"velocpy/gocore/tier"
)

// Tier is an implementation as the suite drives it.
type Tier struct {
	tier.Objects
	Room  int64 // in which the suite assigns offsets, of a tier whose offsets are assigned
	Most  int64 // bytes of the largest object that the suite writes
	Piece int64 // bytes of one Write after which the tier asks again whether the object is wanted; 0: it asks once for each Write

	Crash func() (*Tier, error)         // the process is lost; returns the tier as the next one finds it. nil: nothing simulates that, and the tier is not durable
	Other func() (tier.Objects, error)  // the tier as another process sees it now; nil: none does
	Fail  func(on bool)                 // makes writes or commits fail; nil: nothing does
	Close func() error                  // nil: there is nothing to close
	Wrong func(tier.Object) tier.Object // another object of the same place, for tiers that look at more than the ID; nil: there is none
}

// TB is what testing.T and rapid.T have in common.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Test runs the suite. open returns a new, empty tier; calls with the same seed return the same.
func Test(t *testing.T, open func(t TB, seed uint64) *Tier) {
	t.Run("model", func(t *testing.T) { againstModel(t, open) })
	for name, run := range map[string]func(*bench){
		"capabilities":    capabilities,
		"empty":           emptyObjects,
		"ranges":          ranges,
		"order of writes": orderOfWrites,
		"ends":            ends,
		"arrivals":        arrivals,
		"immutable":       immutable,
		"races to create": racesToCreate,
		"deleted":         deleted,
		"unwanted":        unwanted,
		"failures":        failures,
		"neighbours":      neighbours,
		"lists":           lists,
		"at once":         atOnce,
		"readers at once": readersAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, open(t, 1))
			run(b)
			b.close()
		})
	}
}

// bench is a tier under test with the room that is left in it.
type bench struct {
	TB
	*Tier
	can  tier.Capabilities
	last uint64 // ID that was given

	mu   sync.Mutex
	room []tier.Object // ranges in use, ascending
}

func newBench(t TB, with *Tier) *bench {
	b := &bench{TB: t, Tier: with, can: with.Capabilities()}
	if b.can.Grain < 1 || b.can.Assigned && b.Room < 4*b.can.Grain || b.Most < 1 {
		t.Fatalf("the suite has no room: %d in grains of %d, objects up to %d", b.Room, b.can.Grain, b.Most)
	}
	return b
}

func (b *bench) close() {
	if b.Close != nil {
		b.check(b.Close(), "close")
	}
}

func (b *bench) check(err error, format string, args ...any) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}

// fails checks that a call has failed, and with what.
func (b *bench) fails(err, want error, format string, args ...any) {
	b.Helper()
	if err == nil || want != nil && !errors.Is(err, want) {
		b.Fatalf("%s: the error is %v, not %v", fmt.Sprintf(format, args...), err, want)
	}
}

// assign returns a new object, with a place in the room; false when there is none. pick chooses one of so many places.
func (b *bench) assign(bytes int64, pick func(n int) int) (o tier.Object, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	o = tier.Object{ID: b.last, Bytes: bytes}
	if !b.can.Assigned {
		return o, true
	}
	room := max(tier.Grains(bytes, b.can.Grain), b.can.Grain)
	var places []int64
	from := int64(0)
	for i := range len(b.room) + 1 {
		end := b.Room / b.can.Grain * b.can.Grain
		if i < len(b.room) {
			end = b.room[i].Offset
		}
		if end-from >= room {
			places = append(places, from, end-room)
		}
		if i < len(b.room) {
			from = end + max(tier.Grains(b.room[i].Bytes, b.can.Grain), b.can.Grain)
		}
	}
	if len(places) == 0 {
		b.last--
		return o, false
	}
	o.Offset = places[pick(len(places))]
	at, _ := slices.BinarySearchFunc(b.room, o, func(a, b tier.Object) int { return int(a.Offset - b.Offset) })
	b.room = slices.Insert(b.room, at, o)
	return o, true
}

func first(int) int { return 0 }

// object is assign at the first place.
func (b *bench) object(bytes int64) tier.Object {
	b.Helper()
	o, ok := b.assign(bytes, first)
	if !ok {
		b.Fatalf("the suite has no room for %d bytes in %d", bytes, b.Room)
	}
	return o
}

// free gives the place of an object back.
func (b *bench) free(o tier.Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room = slices.DeleteFunc(b.room, func(x tier.Object) bool { return x.ID == o.ID })
}

// size bounds the size of an object by what the tier takes.
func (b *bench) size(bytes int64) int64 { return min(bytes, b.Most) }

// content is the byte that the suite writes at an offset of an object.
func content(id uint64, at int64) byte {
	x := id*0x9e3779b97f4a7c15 + uint64(at>>3)*0xbf58476d1ce4e5b9
	x ^= x >> 31
	x *= 0x94d049bb133111eb
	x ^= x >> 29
	return byte(x >> (8 * (at & 7)))
}

func fill(p []byte, id uint64, at int64) {
	for i := range p {
		p[i] = content(id, at+int64(i))
	}
}

// begin creates an object.
func (b *bench) begin(o tier.Object) tier.Sink {
	b.Helper()
	s, err := b.Create(o, nil)
	b.check(err, "create %+v", o)
	return s
}

// write writes a range of an object.
func (b *bench) write(s tier.Sink, o tier.Object, at, n int64) {
	b.Helper()
	p := make([]byte, n)
	fill(p, o.ID, at)
	b.check(s.Write(at, p), "write %d at %d of %+v", n, at, o)
	clear(p) // the tier has the bytes, not the slice
}

// put writes a whole object and commits it.
func (b *bench) put(bytes int64) tier.Object {
	b.Helper()
	o := b.object(bytes)
	s := b.begin(o)
	b.write(s, o, 0, bytes)
	b.check(s.Commit(), "commit %+v", o)
	return o
}

// drop deletes an object, and frees its room.
func (b *bench) drop(o tier.Object) {
	b.Helper()
	b.check(b.Delete(o), "delete %+v", o)
	b.free(o)
}

// has checks that a tier has an object, with these bytes written.
func (b *bench) has(in tier.Objects, o tier.Object) {
	b.Helper()
	s, err := in.Open(o)
	b.check(err, "open %+v", o)
	b.reads(s, o, 0, o.Bytes)
	if p := s.Bytes(); p != nil {
		if int64(len(p)) != o.Bytes {
			b.Fatalf("%+v lies in %d bytes", o, len(p))
		}
		b.same(p, o, 0)
	}
}

// reads checks a range of an object, and how it arrives.
func (b *bench) reads(s tier.Source, o tier.Object, at, n int64) {
	b.Helper()
	b.check(read(s, o, at, n, func(int64) bool { return true }), "read %d at %d of %+v", n, at, o)
}

func (b *bench) same(p []byte, o tier.Object, at int64) {
	b.Helper()
	for i := range p {
		if p[i] != content(o.ID, at+int64(i)) {
			b.Fatalf("byte %d of %+v is %#x, not %#x", at+int64(i), o, p[i], content(o.ID, at+int64(i)))
		}
	}
}

// margins are how many bytes around the target of a read must stay as they are: one keeps a target of some KiB aligned, the other does not.
var margins = [2]int64{4096, 70}

// read reads a range of an object: each byte that known names is right when its arrival is told, each byte is told of once, and none besides.
func read(s tier.Source, o tier.Object, at, n int64, known func(at int64) bool) error {
	margin := margins[at%2]
	buf := bytes.Repeat([]byte{0xA5}, int(n+2*margin))
	p := buf[margin : margin+n]
	var mu sync.Mutex
	told, ended := make([]bool, n), false
	var bad error
	err := s.Read(at, p, func(from, m int64) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case ended:
			bad = errors.New("an arrival is told after the read has ended")
			return
		case from < 0 || m <= 0 || from > n || m > n-from:
			bad = fmt.Errorf("%d bytes at %d are told", m, from)
			return
		}
		for i := from; i < from+m; i++ {
			switch {
			case told[i]:
				bad = fmt.Errorf("byte %d is told twice", i)
			case known(at+i) && p[i] != content(o.ID, at+i):
				bad = fmt.Errorf("byte %d is %#x when it is told, not %#x", i, p[i], content(o.ID, at+i))
			}
			told[i] = true
		}
	})
	mu.Lock()
	defer mu.Unlock()
	ended = true
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	if i := slices.Index(told, false); i >= 0 {
		return fmt.Errorf("byte %d is not told", i)
	}
	for i, x := range buf {
		if at := int64(i); x != 0xA5 && (at < margin || at >= margin+n) {
			return fmt.Errorf("byte %d beside the target has changed", int64(i)-margin)
		}
	}
	quiet := make([]byte, n)
	if err := s.Read(at, quiet, nil); err != nil {
		return fmt.Errorf("without arrivals: %w", err)
	}
	for i := range n {
		if known(at+i) && (quiet[i] != content(o.ID, at+i) || p[i] != quiet[i]) {
			return fmt.Errorf("byte %d is %#x at the end, and %#x without arrivals, not %#x", i, p[i], quiet[i], content(o.ID, at+i))
		}
	}
	if p, ok := s.(tier.Prover); ok {
		return errors.Join(p.Holds(at, n), p.Proves(at, n))
	}
	return nil
}
