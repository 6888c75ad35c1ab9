package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/model"
	"velocpy/gocore/transfer/copier"
)

// ErrLaunch marks a launch that is invalid for its kernel.
var ErrLaunch = errors.New("not a launch of this kernel")

// Twin returns a function that does a kernel's work on host memory; nil if the name is no kernel's. The function runs one launch, takes all addresses
// of the parameter for addresses of this process, and produces the same bytes. It allocates a little for strided arrays and nothing otherwise. It
// refuses a launch that does not match its parameter, without doing anything.
func Twin(name string) func(blocks, threads int, parameter []byte) error {
	for _, of := range []func(string) func(int, int, []byte) error{codecTwin, dedupTwin} {
		if twin := of(name); twin != nil {
			return twin
		}
	}
	base, isFew := strings.CutSuffix(name, few)
	runs, arrays := manyRuns, manyArrays
	if isFew {
		runs, arrays = fewRuns, fewArrays
	}
	switch base {
	case pack, packSums, hash:
		return func(blocks, threads int, parameter []byte) error { return runs.twin(base, blocks, threads, parameter) }
	case gather, scatter:
		return func(blocks, threads int, parameter []byte) error {
			return arrays.twin(base, blocks, threads, parameter)
		}
	}
	return nil
}

func (n runLayout) twin(name string, blocks, threads int, b []byte) error {
	wanted := sumThreads
	if name == pack {
		wanted = packThreads
	}
	if err := n.check(blocks, threads, wanted, b); err != nil {
		return err
	}
	sums := binary.LittleEndian.Uint64(b[runSums:])
	for i := range int(binary.LittleEndian.Uint32(b[runCount:])) {
		size := int64(binary.LittleEndian.Uint64(b[n.bytes(i):]))
		from := text(binary.LittleEndian.Uint64(b[n.from(i):]), size)
		if name != hash {
			copy(text(binary.LittleEndian.Uint64(b[n.to(i):]), size), from)
		}
		if name == pack {
			continue
		}
		word := sums + 8*uint64(binary.LittleEndian.Uint32(b[n.sum(i):]))
		for ; len(from) > 0; word += 8 {
			leaf := from[:min(len(from), checksum.LeafBytes)]
			*(*uint64)(pointer(word)) = checksum.Leaf(leaf)
			from = from[len(leaf):]
		}
	}
	return nil
}

// check compares a launch with its parameter.
func (n runLayout) check(blocks, threads, wanted int, b []byte) error {
	if len(b) != n.size() || threads != wanted {
		return fmt.Errorf("%d bytes, %d threads: %w", len(b), threads, ErrLaunch)
	}
	count, unit := int(binary.LittleEndian.Uint32(b[runCount:])), int64(binary.LittleEndian.Uint32(b[runUnit:]))
	if count == 0 || count > int(n) || unit == 0 {
		return fmt.Errorf("%d pieces in units of %d bytes: %w", count, unit, ErrLaunch)
	}
	units := int64(0)
	for i := range count {
		size := int64(binary.LittleEndian.Uint64(b[n.bytes(i):]))
		if first := binary.LittleEndian.Uint32(b[n.first(i):]); size <= 0 || int64(first) != units {
			return fmt.Errorf("piece %d of %d bytes begins with unit %d after %d: %w", i, size, first, units, ErrLaunch)
		}
		units += (size-1)/unit + 1
	}
	if units != int64(blocks) || units != int64(binary.LittleEndian.Uint32(b[runUnits:])) {
		return fmt.Errorf("%d blocks for %d units: %w", blocks, units, ErrLaunch)
	}
	return nil
}

func (n arrayLayout) twin(name string, blocks, threads int, b []byte) error {
	if len(b) != n.size() || threads != stridedThreads {
		return fmt.Errorf("%d bytes, %d threads: %w", len(b), threads, ErrLaunch)
	}
	count := int(binary.LittleEndian.Uint32(b[arrayCount:]))
	if count == 0 || count > n.arrays {
		return fmt.Errorf("%d arrays: %w", count, ErrLaunch)
	}
	pieces := make([]copier.Piece, count)
	units := int64(0)
	for i := range pieces {
		a, err := n.decode(b, i)
		if err != nil {
			return err
		}
		if first := binary.LittleEndian.Uint32(b[n.first(i):]); int64(first) != units {
			return fmt.Errorf("array %d begins with unit %d after %d: %w", i, first, units, ErrLaunch)
		}
		units += a.units()
		pieces[i] = a.piece()
		if err := pieces[i].Mem.Check(pieces[i].Bytes); err != nil {
			return fmt.Errorf("array %d: %w: %w", i, err, ErrLaunch)
		}
	}
	if units != int64(blocks) || units != int64(binary.LittleEndian.Uint32(b[arrayUnits:])) {
		return fmt.Errorf("%d blocks for %d units: %w", blocks, units, ErrLaunch)
	}
	direction := copier.Gather
	if name == scatter {
		direction = copier.Scatter
	}
	job := copier.NewJob(direction, pieces, copier.Options{})
	job.Run(0)
	job.Free()
	return nil
}

// decode reads one array.
func (n arrayLayout) decode(b []byte, i int) (array, error) {
	code := binary.LittleEndian.Uint32(b[n.layout(i):])
	a := array{
		slot:     binary.LittleEndian.Uint64(b[n.slot(i):]),
		mem:      binary.LittleEndian.Uint64(b[n.mem(i):]),
		elements: binary.LittleEndian.Uint32(b[n.elements(i):]),
		log:      uint8(code >> 20 & 15),
		turned:   uint8(code >> 24),
	}
	begin, count := int(code&0xffff), int(code>>16&15)
	if count == 0 || count > maxAxes || begin+count > n.axes || a.log > maxElementLog || int(a.turned) >= count || a.elements > maxElements {
		return a, fmt.Errorf("array %d, layout %#x: %w", i, code, ErrLaunch)
	}
	for x := begin; x < begin+count; x++ {
		length := int64(binary.LittleEndian.Uint32(b[n.length(x):]))
		a.axes = append(a.axes, model.Axis{N: length, Stride: int64(binary.LittleEndian.Uint64(b[n.stride(x):]))})
	}
	return a, nil
}

// piece is the array in the form of package copier.
func (a *array) piece() copier.Piece {
	mem := model.Strided{Base: pointer(a.mem), Item: 1 << a.log}
	for _, x := range a.axes {
		mem.Shape = append(mem.Shape, x.N)
		mem.Strides = append(mem.Strides, x.Stride)
	}
	return copier.Piece{Slot: pointer(a.slot), Bytes: int64(a.elements) << a.log, Mem: mem}
}

// pointer converts an address of a parameter to a pointer. The caller of the launch keeps its memory alive.
func pointer(at uint64) unsafe.Pointer {
	place := uintptr(at)
	return *(*unsafe.Pointer)(unsafe.Pointer(&place))
}

func text(at uint64, bytes int64) []byte { return unsafe.Slice((*byte)(pointer(at)), bytes) }

func wordsAt(at uint64, count int) []uint64 { return unsafe.Slice((*uint64)(pointer(at)), count) }
