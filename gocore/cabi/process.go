package main

/*
#include "velocpy_abi.h"
typedef const char veloc_const_char;
typedef const veloc_key veloc_const_key;
*/
import "C"

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"unsafe"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/status"
	"velocpy/gocore/config"
	"velocpy/gocore/policy/sim"
)

//export veloc_abi_version
func veloc_abi_version() C.uint32_t { return C.VELOC_ABI_VERSION }

// setup is the configuration that the first veloc_init sets.
type setup struct {
	MaxProcs    int   `json:"max_procs"`
	GCPercent   *int  `json:"gc_percent"`
	MemoryLimit int64 `json:"memory_limit"`
	TestHooks   bool  `json:"test_hooks"`
	// For tests, with the hooks: the point at which the process kills itself, and constants of durable stores.
	KillPoint    string `json:"kill_point"`
	CatalogSlack int64  `json:"catalog_slack"`
	SegmentBytes int64  `json:"segment_bytes"`
}

var process struct {
	mu     sync.Mutex
	done   bool
	text   string
	config setup
}

//export veloc_init
func veloc_init(config *C.veloc_const_char, length C.int64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		text, err := bytesAt(config, length)
		if err != nil {
			return 0, err
		}
		return status.OK, initialise(text)
	})
}

func initialise(text []byte) error {
	var c setup
	if len(text) > 0 {
		if err := json.Unmarshal(text, &c); err != nil {
			return status.Wrap(status.Invalid, err, "the configuration is not understood")
		}
	}
	if hooked := c.KillPoint != "" || c.CatalogSlack != 0 || c.SegmentBytes != 0; hooked && !c.TestHooks {
		return status.New(status.Unavailable, "test hooks are off")
	}
	canonical, err := json.Marshal(c)
	if err != nil {
		return err
	}
	p := &process
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		if string(canonical) != p.text {
			return status.New(status.Invalid, "the core runs with %s already; it cannot be given %s", p.text, canonical)
		}
		return nil
	}
	if err := killpoint.Arm(c.KillPoint); err != nil {
		return status.Wrap(status.Invalid, err, "the configuration is not understood")
	}
	p.done, p.text, p.config = true, string(canonical), c
	closeLocksInChildren()
	if c.MaxProcs > 0 {
		runtime.GOMAXPROCS(c.MaxProcs)
	}
	if c.GCPercent != nil {
		debug.SetGCPercent(*c.GCPercent)
	}
	if c.MemoryLimit > 0 {
		debug.SetMemoryLimit(c.MemoryLimit)
	}
	return nil
}

// constants sets a store's constants from the configuration of the process.
func constants(c *config.Config) {
	process.mu.Lock()
	defer process.mu.Unlock()
	c.CatalogSlack, c.SegmentBytes = process.config.CatalogSlack, process.config.SegmentBytes
}

func testing() error {
	process.mu.Lock()
	defer process.mu.Unlock()
	if !process.config.TestHooks {
		return status.New(status.Unavailable, "test hooks are off")
	}
	return nil
}

//export veloc_build_info
func veloc_build_info(buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		info := map[string]any{"version": version, "revision": revision, "go": runtime.Version(), "max_procs": runtime.GOMAXPROCS(0)}
		if build, ok := debug.ReadBuildInfo(); ok {
			modules := map[string]string{}
			for _, m := range build.Deps {
				modules[m.Path] = m.Version
			}
			info["modules"] = modules
			for _, s := range build.Settings {
				info[s.Key] = s.Value
			}
		}
		text, err := json.Marshal(info)
		if err != nil {
			return 0, err
		}
		return status.OK, give(string(text), buf, capacity, length)
	})
}

//export veloc_in_use
func veloc_in_use(buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		counts := map[string]int64{
			"mapped_bytes": memory.Total(),
			"stores":       int64(stores.Len()),
			"histories":    int64(histories.Len()),
			"operations":   int64(ops.Len()),
			"leases":       int64(leases.Len()),
		}
		for name, n := range safego.Running() { // runtime.NumGoroutine would count each thread of the application, too, that has ever called the core
			counts["goroutines"] += int64(n)
			counts["goroutine "+name] = int64(n)
		}
		text, err := json.Marshal(counts)
		if err != nil {
			return 0, err
		}
		return status.OK, give(string(text), buf, capacity, length)
	})
}

// logBatch is the number of log records that one call takes from the ring.
const logBatch = 16

// logRoom is enough for a batch even if JSON escapes every character of its messages.
const logRoom = logBatch * (6*logring.MaxMessage + 128)

//export veloc_drain_log
func veloc_drain_log(buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		if err := need(unsafe.Pointer(length)); err != nil {
			return 0, err
		}
		if capacity < logRoom {
			*length = logRoom // the batch must fit before it is taken from the ring
			return status.OK, nil
		}
		var b strings.Builder
		for _, r := range logring.Drain(logBatch) {
			line, err := json.Marshal(map[string]any{"level": int(r.Level), "message": r.Message, "time_ns": r.TimeNs})
			if err == nil {
				b.Write(line)
				b.WriteByte('\n')
			}
		}
		return status.OK, give(b.String(), buf, capacity, length)
	})
}

//export veloc_simulate
func veloc_simulate(request *C.veloc_const_char, size C.int64_t, buf *C.char, capacity C.int64_t, length *C.int64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		text, err := bytesAt(request, size)
		if err != nil {
			return 0, err
		}
		answer, err := sim.Play(text)
		if err != nil {
			return 0, status.Wrap(status.Invalid, err, "nothing was simulated")
		}
		reply, err := json.Marshal(answer)
		if err != nil {
			return 0, err
		}
		return status.OK, give(string(reply), buf, capacity, length)
	})
}

//export veloc_test_panic
func veloc_test_panic(where C.int32_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		if err := testing(); err != nil {
			return 0, err
		}
		if where == 1 {
			safego.Go("test", func() { panic("asked to panic in a goroutine") })
			return status.OK, nil
		}
		panic("asked to panic in a call")
	})
}

//export veloc_test_corrupt
func veloc_test_corrupt(history C.uint64_t, key *C.veloc_const_key, tier C.int32_t, offset C.int64_t, failure *C.veloc_error) C.int32_t {
	return guard(failure, func() (status.Code, error) {
		if err := testing(); err != nil {
			return 0, err
		}
		h, err := historyOf(history)
		if err != nil {
			return 0, err
		}
		k, err := keyOf(key)
		if err != nil {
			return 0, err
		}
		return status.OK, h.Corrupt(k, int(tier), int64(offset))
	})
}
