package double

import (
	"bytes"

	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/kernel"
)

// function is a kernel of a loaded module.
type function struct {
	name   string
	module cuda.Module
	gpu    *gpu
	twin   func(blocks, threads int, parameter []byte) error
}

// Limits of a launch.
const (
	maxParameter = 32764
	maxThreads   = 1024
	maxShared    = 227 << 10
)

// modules is the loaded modules, and the launches of their kernels.
type modules struct {
	*state

	loaded    map[cuda.Module]*gpu
	functions map[cuda.Function]*function
}

// LoadModule implements cuda.Driver. It accepts any image except an empty one.
func (ms *modules) LoadModule(c cuda.Context, image []byte) (cuda.Module, error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	g, err := ms.within("LoadModule", c)
	if err != nil {
		return 0, err
	}
	if len(image) == 0 {
		return 0, fail("LoadModule", cuda.InvalidImage)
	}
	h := cuda.Module(ms.handle())
	ms.loaded[h] = g
	return h, nil
}

// UnloadModule implements cuda.Driver.
func (ms *modules) UnloadModule(c cuda.Context, h cuda.Module) error {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	g, err := ms.within("UnloadModule", c)
	if err != nil {
		return err
	}
	if ms.loaded[h] != g {
		ms.checks.wrong("UnloadModule of %#x, which is not loaded in this context", uintptr(h))
		return fail("UnloadModule", cuda.InvalidHandle)
	}
	delete(ms.loaded, h)
	return nil
}

// Function implements cuda.Driver: every module contains all kernels that have a twin.
func (ms *modules) Function(c cuda.Context, h cuda.Module, name string) (cuda.Function, error) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	g, err := ms.within("Function", c)
	if err != nil {
		return 0, err
	}
	if ms.loaded[h] != g {
		ms.checks.wrong("Function of module %#x, which is not loaded in this context", uintptr(h))
		return 0, fail("Function", cuda.InvalidHandle)
	}
	f := &function{name: name, module: h, gpu: g, twin: ms.cfg.Twins(name)}
	if f.twin == nil {
		return 0, fail("Function", cuda.NotFound)
	}
	handle := cuda.Function(ms.handle())
	ms.functions[handle] = f
	return handle, nil
}

// Launch implements cuda.Driver.
func (ms *modules) Launch(c cuda.Context, h cuda.Function, blocks, threads, shared int, at cuda.Stream, parameter []byte) error {
	const call = "Launch"
	ms.mu.Lock()
	defer ms.mu.Unlock()
	s, err := ms.streams.in(call, c, at)
	if err != nil {
		return err
	}
	f := ms.functions[h]
	if f == nil || f.gpu != s.gpu || ms.loaded[f.module] == nil {
		ms.checks.wrong("Launch of function %#x, which is not loaded in this context", uintptr(h))
		return fail(call, cuda.InvalidHandle)
	}
	if blocks < 1 || threads < 1 || threads > maxThreads || shared < 0 || shared > maxShared || len(parameter) > maxParameter {
		return fail(call, cuda.InvalidValue)
	}
	ms.checks.calls[call+" "+f.name]++
	ms.queues.put(s, ms.launching(f, blocks, threads, bytes.Clone(parameter)))
	return nil
}

func (ms *modules) launching(f *function, blocks, threads int, parameter []byte) *work {
	w := &work{what: "launch of " + f.name, kernel: true}
	if ms.cfg.Touches != nil {
		reads, writes := ms.cfg.Touches(f.name, parameter)
		w.reads, w.writes = spans(reads), spans(writes)
	}
	w.run = func() cuda.Code {
		if f.twin(blocks, threads, parameter) != nil {
			return cuda.LaunchFailed
		}
		return 0
	}
	return w
}

func spans(ranges []kernel.Range) []Span {
	all := make([]Span, len(ranges))
	for i, r := range ranges {
		all[i] = Span(r)
	}
	return all
}
