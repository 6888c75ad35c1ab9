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

// LoadModule implements cuda.Driver. It accepts any image except an empty one.
func (d *Driver) LoadModule(c cuda.Context, image []byte) (cuda.Module, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("LoadModule", c)
	if err != nil {
		return 0, err
	}
	if len(image) == 0 {
		return 0, fail("LoadModule", cuda.InvalidImage)
	}
	h := cuda.Module(d.handle())
	d.modules[h] = g
	return h, nil
}

// UnloadModule implements cuda.Driver.
func (d *Driver) UnloadModule(c cuda.Context, h cuda.Module) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("UnloadModule", c)
	if err != nil {
		return err
	}
	if d.modules[h] != g {
		d.wrong("UnloadModule of %#x, which is not loaded in this context", uintptr(h))
		return fail("UnloadModule", cuda.InvalidHandle)
	}
	delete(d.modules, h)
	return nil
}

// Function implements cuda.Driver: every module contains all kernels that have a twin.
func (d *Driver) Function(c cuda.Context, h cuda.Module, name string) (cuda.Function, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g, err := d.within("Function", c)
	if err != nil {
		return 0, err
	}
	if d.modules[h] != g {
		d.wrong("Function of module %#x, which is not loaded in this context", uintptr(h))
		return 0, fail("Function", cuda.InvalidHandle)
	}
	f := &function{name: name, module: h, gpu: g, twin: d.cfg.Twins(name)}
	if f.twin == nil {
		return 0, fail("Function", cuda.NotFound)
	}
	handle := cuda.Function(d.handle())
	d.functions[handle] = f
	return handle, nil
}

// Launch implements cuda.Driver.
func (d *Driver) Launch(c cuda.Context, h cuda.Function, blocks, threads, shared int, at cuda.Stream, parameter []byte) error {
	const call = "Launch"
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.in(call, c, at)
	if err != nil {
		return err
	}
	f := d.functions[h]
	if f == nil || f.gpu != s.gpu || d.modules[f.module] == nil {
		d.wrong("Launch of function %#x, which is not loaded in this context", uintptr(h))
		return fail(call, cuda.InvalidHandle)
	}
	if blocks < 1 || threads < 1 || threads > maxThreads || shared < 0 || shared > maxShared || len(parameter) > maxParameter {
		return fail(call, cuda.InvalidValue)
	}
	d.calls[call+" "+f.name]++
	d.put(s, d.launching(f, blocks, threads, bytes.Clone(parameter)))
	return nil
}

func (d *Driver) launching(f *function, blocks, threads int, parameter []byte) *work {
	w := &work{what: "launch of " + f.name, kernel: true}
	if d.cfg.Touches != nil {
		reads, writes := d.cfg.Touches(f.name, parameter)
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
