//go:build velocpy_double

package main

/*
#include "velocpy_abi.h"
*/
import "C"

import (
	"encoding/json"
	"sync"
	"time"

	"velocpy/gocore/base/handle"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
)

// A core built with the tag velocpy_double uses the driver's double. Tests in Python play the application with it: they allocate arrays, create
// streams, queue work in them and hold them. Only tests build it.

// longestPause is the longest delay of work in the double.
const longestPause = 200 * time.Microsecond

// board is the double that the process has, as its one machine.
var board struct {
	once    sync.Once
	driver  *double.Driver
	context cuda.Context
	err     error
	held    handle.Table[func()]
}

func driver() (*double.Driver, error) {
	board.once.Do(func() {
		board.driver = double.New(double.Config{Delay: longestPause})
		board.context, board.err = board.driver.RetainPrimary(0)
	})
	return board.driver, board.err
}

// openDevice opens a device of the double, which has CPU twins for the kernels.
func openDevice(ordinal int, _ string) (device.Device, error) {
	d, err := driver()
	if err != nil {
		return nil, err
	}
	opened, err := cuda.Open(d, ordinal, []byte("twins"))
	if err != nil {
		return nil, err
	}
	opened.UseCodec(func() ([]byte, error) { return []byte("twins"), nil })
	opened.UseDedup(func() ([]byte, error) { return []byte("twins"), nil })
	return opened, nil
}

// veloc_double_allocate allocates device memory for the application. It returns the address, or 0.
//
//export veloc_double_allocate
func veloc_double_allocate(bytes C.int64_t) C.uint64_t {
	d, err := driver()
	if err != nil {
		return 0
	}
	at, _ := d.Allocate(0, int64(bytes))
	return C.uint64_t(at)
}

// veloc_double_stream creates a stream of the application. blocking: ordered against the legacy default stream.
//
//export veloc_double_stream
func veloc_double_stream(blocking C.int32_t) C.uint64_t {
	d, err := driver()
	if err != nil {
		return 0
	}
	return C.uint64_t(d.Foreign(0, blocking != 0))
}

// veloc_double_copy queues a copy in a stream. 1: the driver refused.
//
//export veloc_double_copy
func veloc_double_copy(to, from C.uint64_t, n C.int64_t, stream C.uint64_t) C.int32_t {
	d, err := driver()
	if err == nil {
		err = d.Copy(board.context, cuda.Pointer(to), cuda.Pointer(from), int64(n), cuda.Stream(stream))
	}
	if err != nil {
		return 1
	}
	return 0
}

// veloc_double_follow makes all work that is queued later in one stream wait for the work that is queued in another. 1: the driver refused.
//
//export veloc_double_follow
func veloc_double_follow(stream, other C.uint64_t) C.int32_t {
	d, err := driver()
	if err != nil {
		return 1
	}
	event, err := d.CreateEvent(board.context, false)
	if err == nil {
		err = d.RecordEvent(board.context, event, cuda.Stream(other))
	}
	if err == nil {
		err = d.StreamWaitEvent(board.context, cuda.Stream(stream), event)
	}
	if err != nil {
		return 1
	}
	return 0
}

// veloc_double_hold queues a kernel in a stream. The kernel ends when the handle is released; 0: the driver refused.
//
//export veloc_double_hold
func veloc_double_hold(stream C.uint64_t) C.uint64_t {
	d, err := driver()
	if err != nil {
		return 0
	}
	release, err := d.Hold(0, cuda.Stream(stream))
	if err != nil {
		return 0
	}
	return C.uint64_t(board.held.Put(release))
}

//export veloc_double_release
func veloc_double_release(held C.uint64_t) {
	if release, ok := board.held.Take(uint64(held)); ok {
		release()
	}
}

// veloc_double_settle waits until every stream is empty.
//
//export veloc_double_settle
func veloc_double_settle() {
	if d, err := driver(); err == nil {
		d.Settle()
	}
}

// veloc_double_misuse returns errors that a real driver might not have detected, as a JSON array of texts. Unordered accesses are among them.
//
//export veloc_double_misuse
func veloc_double_misuse(buf *C.char, capacity C.int64_t, length *C.int64_t) C.int32_t {
	d, err := driver()
	if err != nil {
		return 1
	}
	text, err := json.Marshal(append([]string{}, d.Misuse()...))
	if err == nil {
		err = give(string(text), buf, capacity, length)
	}
	if err != nil {
		return 1
	}
	return 0
}
