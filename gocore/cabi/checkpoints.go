package main

/*
#include "velocpy_abi.h"
typedef const char veloc_const_char;
typedef const uint64_t veloc_const_uint64;
typedef const veloc_checkpoint_args veloc_const_checkpoint_args;
typedef const veloc_restore_args veloc_const_restore_args;
*/
import "C"

import (
	"unsafe"

	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/store"
)

// Limits on the numbers in one call: a wrong count or rank must give an error, not an out-of-bounds read.
const (
	maxRegions = 1 << 20
	maxAxes    = 64
	maxStreams = 1 << 10
	maxPlace   = 1 << 16
)

// regionsOf views the caller's regions. Shapes and strides stay in the caller's memory.
func regionsOf(p *C.veloc_region, n C.int64_t) ([]model.Region, error) {
	if n < 0 || n > maxRegions || (p == nil && n > 0) {
		return nil, status.New(status.Invalid, "%d regions", int64(n))
	}
	regions := make([]model.Region, int(n))
	for i, r := range unsafe.Slice(p, int(n)) {
		axes := int(r.ndim)
		if axes < 0 || axes > maxAxes || (axes > 0 && (r.shape == nil || r.strides == nil)) || r.nbytes < 0 || r.itemsize < 0 ||
			r.place < 0 || r.place > maxPlace {
			return nil, status.New(status.Invalid, "%d bytes, %d axes, elements of %d bytes", int64(r.nbytes), axes, int32(r.itemsize)).AtRegion(i)
		}
		to := &regions[i]
		to.Offset, to.Bytes, to.Place = int64(r.offset), int64(r.nbytes), int32(r.place)
		to.Mem = model.Strided{Base: r.data, Item: int64(r.itemsize)}
		if axes > 0 {
			to.Mem.Shape = unsafe.Slice((*int64)(unsafe.Pointer(r.shape)), axes)
			to.Mem.Strides = unsafe.Slice((*int64)(unsafe.Pointer(r.strides)), axes)
		}
	}
	return regions, nil
}

// streamsOf views the caller's streams.
func streamsOf(p *C.veloc_const_uint64, n C.int32_t) ([]uint64, error) {
	if n < 0 || n > maxStreams || (p == nil && n > 0) {
		return nil, status.New(status.Invalid, "%d streams", int32(n))
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(p)), int(n)), nil
}

//export veloc_checkpoint
func veloc_checkpoint(history C.uint64_t, args *C.veloc_const_checkpoint_args, out *C.veloc_outcome, failure *C.veloc_error) C.int32_t {
	return begin(out, failure, func(o *operation.Outcome) (*operation.Op, status.Code, error) {
		h, err := historyOf(history)
		if err != nil {
			return nil, 0, err
		}
		a, err := checkpointArgs(args)
		if err != nil {
			return nil, 0, err
		}
		return h.Checkpoint(a, o)
	})
}

func checkpointArgs(args *C.veloc_const_checkpoint_args) (*operation.CheckpointArgs, error) {
	if err := need(unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	a := &operation.CheckpointArgs{
		Slot: int64(args.slot_bytes), Tier: int(args.tier), FD: int32(args.event_fd),
		SourceStays: args.flags&C.VELOC_CP_SOURCE_STAYS != 0, Patient: args.flags&C.VELOC_CP_PATIENT != 0,
	}
	var err error
	if args.key.kind == C.VELOC_KEY_AUTO {
		a.AutoKey = true
	} else if a.Key, err = keyOf(&args.key); err != nil {
		return nil, err
	}
	if a.Regions, err = regionsOf((*C.veloc_region)(unsafe.Pointer(args.regions)), args.n_regions); err != nil {
		return nil, err
	}
	if a.Layout, err = bytesAt(args.layout, args.layout_len); err != nil {
		return nil, err
	}
	if a.Meta, err = bytesAt(args.meta, args.meta_len); err != nil {
		return nil, err
	}
	if a.Slot < 0 {
		return nil, status.New(status.Invalid, "a slot of %d bytes", a.Slot)
	}
	a.Streams, err = streamsOf((*C.veloc_const_uint64)(unsafe.Pointer(args.streams)), args.n_streams)
	return a, err
}

// maxMany bounds the checkpoints of one call.
const maxMany = 1 << 20

//export veloc_checkpoint_many
func veloc_checkpoint_many(history C.uint64_t, args *C.veloc_const_checkpoint_args, n C.int64_t, outs *C.veloc_outcome, done *C.int64_t,
	failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		if err := need(unsafe.Pointer(args), unsafe.Pointer(outs), unsafe.Pointer(done)); err != nil {
			return 0, err
		}
		*done = 0
		if n < 0 || n > maxMany {
			return 0, status.New(status.Invalid, "%d checkpoints", int64(n))
		}
		h, err := historyOf(history)
		if err != nil {
			return 0, err
		}
		all := make([]operation.CheckpointArgs, int(n))
		given := unsafe.Slice((*C.veloc_checkpoint_args)(unsafe.Pointer(args)), int(n))
		for i := range all {
			a, err := checkpointArgs(&given[i])
			if err != nil {
				return 0, err
			}
			all[i] = *a
		}
		answers := make([]operation.Outcome, len(all))
		captured, op, code, err := h.CheckpointMany(all, answers)
		places := unsafe.Slice(outs, len(all))
		for i := range captured {
			tell(&places[i], &answers[i])
		}
		*done = C.int64_t(captured)
		if err == nil && op != nil {
			places[captured].op = C.uint64_t(ops.Put(op))
		}
		return code, err
	})
}

//export veloc_restore
func veloc_restore(history C.uint64_t, args *C.veloc_const_restore_args, out *C.veloc_outcome, failure *C.veloc_error) C.int32_t {
	return begin(out, failure, func(o *operation.Outcome) (*operation.Op, status.Code, error) {
		h, err := historyOf(history)
		if err != nil {
			return nil, 0, err
		}
		a, err := restoreArgs(args)
		if err != nil {
			return nil, 0, err
		}
		return h.Restore(a, o)
	})
}

func restoreArgs(args *C.veloc_const_restore_args) (*operation.RestoreArgs, error) {
	if err := need(unsafe.Pointer(args)); err != nil {
		return nil, err
	}
	a := &operation.RestoreArgs{
		Expected: uint64(args.expected_layout), FD: int32(args.event_fd), Lease: args.into == nil,
		Last: args.flags&C.VELOC_RS_LAST != 0, Peek: args.flags&C.VELOC_RS_PEEK != 0, Patient: args.flags&C.VELOC_RS_PATIENT != 0,
		Looped: args.flags&C.VELOC_RS_LOOPED != 0,
	}
	var err error
	if a.Key, err = keyOf(&args.key); err != nil {
		return nil, err
	}
	if args.n_select < 0 || args.n_select > maxRegions || (args._select == nil && args.n_select > 0) {
		return nil, status.New(status.Invalid, "%d regions selected", int64(args.n_select))
	}
	if args._select != nil {
		a.Select = unsafe.Slice((*int32)(unsafe.Pointer(args._select)), int(args.n_select))
	}
	if a.Streams, err = streamsOf((*C.veloc_const_uint64)(unsafe.Pointer(args.streams)), args.n_streams); err != nil {
		return nil, err
	}
	if !a.Lease {
		if a.Into, err = regionsOf((*C.veloc_region)(unsafe.Pointer(args.into)), args.n_into); err != nil {
			return nil, err
		}
	}
	if args.parts != nil {
		a.Parts, err = partsOf((*C.veloc_part)(unsafe.Pointer(args.parts)), args.n_into)
	}
	return a, err
}

// partsOf views the parts of a restore. Shapes and strides stay in the caller's memory.
func partsOf(p *C.veloc_part, n C.int64_t) ([]model.Part, error) {
	if n < 0 || n > maxRegions {
		return nil, status.New(status.Invalid, "%d parts", int64(n))
	}
	parts := make([]model.Part, int(n))
	for i, r := range unsafe.Slice(p, int(n)) {
		axes := int(r.ndim)
		if axes < 0 || axes > maxAxes || (axes > 0 && (r.shape == nil || r.strides == nil)) {
			return nil, status.New(status.Invalid, "a part with %d axes", axes).AtRegion(i)
		}
		to := &parts[i]
		to.Offset, to.Item = int64(r.offset), int64(r.itemsize)
		if axes > 0 {
			to.Shape = unsafe.Slice((*int64)(unsafe.Pointer(r.shape)), axes)
			to.Strides = unsafe.Slice((*int64)(unsafe.Pointer(r.strides)), axes)
		}
	}
	return parts, nil
}

//export veloc_lease_meta
func veloc_lease_meta(lease C.uint64_t, buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		l, ok := leases.Get(uint64(lease))
		if !ok {
			return 0, stale("lease")
		}
		return status.OK, give(l.Meta(), buf, capacity, length)
	})
}

//export veloc_lease_take
func veloc_lease_take(lease C.uint64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		l, ok := leases.Get(uint64(lease))
		if !ok {
			return 0, stale("lease")
		}
		return status.OK, l.Take()
	})
}

//export veloc_lease_release
func veloc_lease_release(lease C.uint64_t, streams *C.veloc_const_uint64, n C.int32_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		readers, err := streamsOf(streams, n)
		if err != nil {
			return 0, err
		}
		l, ok := leases.Take(uint64(lease))
		if !ok {
			return 0, stale("lease")
		}
		return status.OK, l.Release(readers...)
	})
}

//export veloc_lease_use
func veloc_lease_use(lease, stream C.uint64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		l, ok := leases.Get(uint64(lease))
		if !ok {
			return 0, stale("lease")
		}
		return status.OK, l.Use(uint64(stream))
	})
}

//export veloc_lease_read
func veloc_lease_read(lease C.uint64_t, offset, nbytes C.int64_t, to unsafe.Pointer, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		l, ok := leases.Get(uint64(lease))
		if !ok {
			return 0, stale("lease")
		}
		if nbytes < 0 || (to == nil && nbytes > 0) {
			return 0, status.New(status.Invalid, "no place for %d bytes", int64(nbytes))
		}
		return status.OK, l.Read(unsafe.Slice((*byte)(to), int(nbytes)), int64(offset))
	})
}

//export veloc_wait
func veloc_wait(handle, history, ticket C.uint64_t, tier, fd C.int32_t, out *C.veloc_outcome, failure *C.veloc_error) C.int32_t {
	return begin(out, failure, func(*operation.Outcome) (*operation.Op, status.Code, error) {
		s, err := storeOf(handle)
		if err != nil {
			return nil, 0, err
		}
		var h *store.History
		if history != 0 {
			if h, err = historyOf(history); err != nil {
				return nil, 0, err
			}
		}
		return s.Wait(h, uint64(ticket), int(tier), int32(fd))
	})
}

//export veloc_step
func veloc_step(handle C.uint64_t, out *C.veloc_outcome, failure *C.veloc_error) C.int32_t {
	code := guard(failure, func() (status.Code, error) {
		if err := need(unsafe.Pointer(out)); err != nil {
			return 0, err
		}
		op, ok := ops.Get(uint64(handle))
		if !ok {
			return 0, stale("operation")
		}
		var o operation.Outcome
		code, err := op.Step(&o)
		if err == nil && (code == status.Pending || code == status.Again) {
			return code, nil
		}
		ops.Take(uint64(handle))
		if err == nil {
			tell(out, &o)
		}
		return code, err
	})
	disownIfPoisoned(code, handle)
	return code
}

//export veloc_cancel
func veloc_cancel(handle C.uint64_t, out *C.veloc_outcome, failure *C.veloc_error) C.int32_t {
	code := guard(failure, func() (status.Code, error) {
		op, ok := ops.Take(uint64(handle))
		if !ok {
			return 0, stale("operation")
		}
		if taken := op.Cancel(); taken != nil && out != nil {
			tell(out, taken)
		}
		return status.OK, nil
	})
	disownIfPoisoned(code, handle)
	return code
}

// disownIfPoisoned disowns the operation after a call that found the core poisoned.
func disownIfPoisoned(code C.int32_t, handle C.uint64_t) {
	if code != C.VELOC_E_POISONED {
		return
	}
	if op, ok := ops.Take(uint64(handle)); ok {
		op.Disown()
	}
}
