package hostdevice

import (
	"fmt"
	"slices"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/codec"

	"go.uber.org/atomic"
)

// results are numbers of work in a lane, by container.
type results struct {
	all atomic.Pointer[[]int64]
}

// take is nil if the work has not run.
func (r *results) take() []int64 {
	if all := r.all.Swap(nil); all != nil {
		return *all
	}
	return nil
}

// lengths implements device.Lengths.
type lengths struct{ results }

// Take implements device.Lengths.
func (l *lengths) Take() []int64 { return l.take() }

// Discard implements device.Lengths.
func (l *lengths) Discard() { l.take() }

// faults implements device.Faults.
type faults struct{ results }

// Take implements device.Faults.
func (f *faults) Take() (bad []int) {
	for i, fault := range f.take() {
		if fault != 0 {
			bad = append(bad, i)
		}
	}
	return bad
}

// Discard implements device.Faults.
func (f *faults) Discard() { f.take() }

// Encode implements device.Lane with the codec in Go.
func (l *lane) Encode(all []device.Container, scratch device.Address) (device.Lengths, error) {
	if err := device.CheckEncode(all, scratch); err != nil {
		return nil, err
	}
	r := &lengths{}
	bound := func(c *device.Container) int64 { return int64(codec.Bound(int(c.Bytes))) }
	return r, l.codec(all, scratch, bound, &r.results, encode)
}

// Decode implements device.Lane.
func (l *lane) Decode(all []device.Container, scratch device.Address) (device.Faults, error) {
	if err := device.CheckDecode(all, scratch); err != nil {
		return nil, err
	}
	r := &faults{}
	return r, l.codec(all, scratch, func(c *device.Container) int64 { return c.Length }, &r.results, decode)
}

// codec queues work on containers, each of which takes up to room bytes. Like the kernels it overwrites the scratch memory.
func (l *lane) codec(
	all []device.Container, scratch device.Address, room func(*device.Container) int64, r *results, work func(*device.Container) int64,
) error {
	all = slices.Clone(all)
	used := device.ScratchFor(all)
	touches := []pinned{{scratch, used}}
	for i := range all {
		touches = append(touches, pinned{all[i].Plain, all[i].Bytes}, pinned{all[i].At, room(&all[i])})
		if all[i].Reference != 0 {
			touches = append(touches, pinned{all[i].Reference, all[i].Bytes})
		}
	}
	return l.put(touches, l.dev.unlessLost(func() {
		fill(view(scratch, used))
		numbers := make([]int64, len(all))
		for i := range all {
			numbers[i] = work(&all[i])
		}
		r.all.Store(&numbers)
	}))
}

// fill writes bytes that callers cannot take for theirs.
func fill(p []byte) {
	for i := range p {
		p[i] = 0xd5
	}
}

// headerBytes is the length of a container's header, which devices neither write nor read.
const headerBytes = 64

// encode writes one container and returns its length. It writes the bytes that the kernels write: not the header, and not those between tables and
// payloads.
func encode(c *device.Container) int64 {
	dst := make([]byte, codec.Bound(int(c.Bytes)))
	n, err := codec.Encode(dst, view(c.Plain, c.Bytes), reference(c), codec.Options{Kind: c.Kind, Modes: c.Modes})
	if err != nil { // the container was checked
		panic(fmt.Sprintf("encoding %d bytes: %v", c.Bytes, err))
	}
	at := view(c.At, int64(n))
	tables, payloads := headerBytes+tableBytes*codec.Chunks(int(c.Bytes)), codec.PayloadsAt(int(c.Bytes))
	copy(at[headerBytes:tables], dst[headerBytes:])
	copy(at[payloads:], dst[payloads:n])
	return int64(n)
}

func reference(c *device.Container) []byte {
	if c.Reference == 0 {
		return nil
	}
	return view(c.Reference, c.Bytes)
}

// tableBytes is the length of a chunk's part of the tables.
const tableBytes = 11

// decode writes the plain bytes of one container, and returns 1 for a damaged one.
func decode(c *device.Container) int64 {
	opened, err := codec.OpenTables(view(c.At, c.Length), c.Kind, int(c.Bytes))
	if err == nil {
		err = opened.Decode(view(c.Plain, c.Bytes), slices.Clone(reference(c)), 1)
	}
	if err != nil {
		return 1
	}
	return 0
}
