// Package main is the C ABI of the core. It alone has exported symbols. Their declarations in cshim/velocpy_abi.h are included here, so a signature
// that differs from the contract does not compile.
//
// Exports are thin: they translate arguments, call gocore/store, and translate the results. Each of them recovers panics: a panic poisons the core
// and becomes a status. The package is built with -buildmode=c-shared into velocpy/libvelocpy_core.so.
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../cshim -Wall -Werror
#include <string.h>
#include "velocpy_abi.h"

// cgo drops const from the pointers of an export; through these names it keeps it, and the prototypes agree.
typedef const char veloc_const_char;
typedef const veloc_key veloc_const_key;
typedef const veloc_checkpoint_args veloc_const_checkpoint_args;
typedef const veloc_restore_args veloc_const_restore_args;
typedef const veloc_hint_item veloc_const_hint_item;
*/
import "C"

import (
	"errors"
	"unsafe"

	"velocpy/gocore/base/handle"
	"velocpy/gocore/base/pytext"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
	"velocpy/gocore/store"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "unknown"

// revision is the commit of the source, set in the same way. A + marks uncommitted changes.
var revision = "unknown"

// main never runs, since the library is loaded and not executed.
func main() {}

var (
	stores    handle.Table[*store.Store]
	histories handle.Table[*store.History]
	ops       handle.Table[*operation.Op]
	leases    handle.Table[*operation.Lease]
)

// guard runs the body of an export. It fails when the core is poisoned, recovers panics, and writes an error to the caller's struct.
func guard(failure *C.veloc_error, body func() (status.Code, error)) (code C.int32_t) {
	defer func() {
		if v := recover(); v != nil {
			safego.Poison("a call into the core", v)
			text, _ := safego.Poisoned()
			code = fail(failure, status.New(status.Poisoned, "%s", text))
		}
	}()
	if text, bad := safego.Poisoned(); bad {
		return fail(failure, status.New(status.Poisoned, "%s", text))
	}
	got, err := body()
	if err != nil {
		return fail(failure, err)
	}
	return C.int32_t(got)
}

// fail writes an error to the caller's struct.
func fail(failure *C.veloc_error, err error) C.int32_t {
	var e *status.Error
	if !errors.As(err, &e) {
		e = status.Wrap(status.Internal, err, "unexpected")
	}
	if failure != nil {
		text := e.Message()
		failure.status = C.int32_t(e.Code)
		failure.os_errno = C.int32_t(e.Errno)
		failure.tier = C.int32_t(e.Tier)
		failure.region = C.int32_t(e.Region)
		room := unsafe.Slice((*byte)(unsafe.Pointer(&failure.text[0])), len(failure.text))
		failure.text_len = C.int32_t(copy(room, pytext.Cut(text, len(room))))
	}
	return C.int32_t(e.Code)
}

// give copies text to the caller if it fits. *length is the room that it needs in either case.
func give(text string, buf *C.char, capacity C.int64_t, length *C.int64_t) error {
	if length == nil || capacity < 0 || (buf == nil && capacity > 0) {
		return status.New(status.Invalid, "no place for the answer")
	}
	*length = C.int64_t(len(text))
	if len(text) <= int(capacity) && len(text) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(buf)), len(text)), text)
	}
	return nil
}

// maxText bounds texts that are read from the caller's memory: configurations, names, keys, layouts, annotations.
const maxText = 1 << 28

// bytesAt views the caller's bytes for the duration of a call.
func bytesAt(p *C.veloc_const_char, n C.int64_t) ([]byte, error) {
	switch {
	case n < 0 || n > maxText:
		return nil, status.New(status.Invalid, "a text of %d bytes; it can have 0 to %d", int64(n), maxText)
	case p == nil && n > 0:
		return nil, status.New(status.Invalid, "a null pointer with %d bytes", int64(n))
	}
	if n == 0 {
		return nil, nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n)), nil
}

func keyOf(k *C.veloc_const_key) (model.Key, error) {
	if k == nil {
		return model.Key{}, status.New(status.Invalid, "no key")
	}
	switch k.kind {
	case C.VELOC_KEY_INT:
		return model.Key{Number: int64(k.number)}, nil
	case C.VELOC_KEY_STR:
		text, err := bytesAt(k.text, k.text_len)
		return model.Key{Text: string(text), IsText: true}, err
	}
	return model.Key{}, status.New(status.Invalid, "key kind %d", int32(k.kind))
}

// need rejects null pointers: dereferencing one would panic, which poisons the core of the whole process.
func need(pointers ...unsafe.Pointer) error {
	for _, p := range pointers {
		if p == nil {
			return status.New(status.Invalid, "a null pointer where a struct or the place of an answer should be")
		}
	}
	return nil
}

func stale(kind string) error {
	return status.New(status.Stale, "this %s does not exist, or not any more", kind)
}

func storeOf(h C.uint64_t) (*store.Store, error) {
	if s, ok := stores.Get(uint64(h)); ok {
		return s, nil
	}
	return nil, stale("store")
}

func historyOf(h C.uint64_t) (*store.History, error) {
	if x, ok := histories.Get(uint64(h)); ok {
		return x, nil
	}
	return nil, stale("history")
}

// begin runs a function that begins an operation. If the operation has not ended, it gets a handle. Otherwise its outcome goes to the caller.
func begin(out *C.veloc_outcome, failure *C.veloc_error, start func(o *operation.Outcome) (*operation.Op, status.Code, error)) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		if err := need(unsafe.Pointer(out)); err != nil {
			return 0, err
		}
		var o operation.Outcome
		op, code, err := start(&o)
		switch {
		case err != nil:
		case code == status.Pending || code == status.Again:
			out.op = C.uint64_t(ops.Put(op))
		default:
			tell(out, &o)
		}
		return code, err
	})
}

// tell translates an outcome.
func tell(out *C.veloc_outcome, o *operation.Outcome) {
	out.op = 0
	out.ticket = C.uint64_t(o.Ticket)
	out.layout = C.uint64_t(o.Layout)
	out.slot_bytes = C.int64_t(o.Slot)
	out.meta_len = C.int64_t(o.Meta)
	out.hints_left = C.int64_t(o.HintsLeft)
	out.key_number = C.int64_t(o.Key.Number)
	out.waited_ns = C.int64_t(o.Waited)
	out.flags = 0
	if o.Hit {
		out.flags |= C.VELOC_OUT_HIT
	}
	out.lease, out.base, out.place = 0, nil, 0
	if o.Lease != nil {
		out.lease = C.uint64_t(leases.Put(o.Lease))
		out.base = o.Lease.Base
		out.place = C.int32_t(o.Lease.Place())
		if o.Lease.Writable {
			out.flags |= C.VELOC_OUT_WRITABLE
		}
		if o.Lease.Last {
			out.flags |= C.VELOC_OUT_LAST
		}
	}
}
