package doctor

import (
	"errors"
	"fmt"
	"io/fs"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/kernel"
)

const reinstall = "Install velocpy anew: every wheel has the kernels, and so has a build without VELOCPY_CUDA=0."

// lookAtKernels returns the image of the kernels; nil if it cannot be read. That is no failure without a driver.
func (x *examination) lookAtKernels(needed bool) []byte {
	image, err := x.Kernels()
	f := Finding{What: "kernels' file", Verdict: OK, Facts: map[string]any{"path": x.request.Kernels, "bytes": len(image)}}
	switch {
	case err == nil && len(image) > 0:
		f.Text = quantity.Sized(int64(len(image)))
		x.add(f)
		return image
	case err == nil:
		f.Text = x.request.Kernels + " is empty"
	case errors.Is(err, fs.ErrNotExist):
		f.Text = "this build has no GPU kernels: " + err.Error()
	default:
		f.Text = err.Error()
	}
	f.Verdict, f.Remedy = Failed, reinstall
	if !needed {
		f.Verdict = Absent
	}
	x.add(f)
	return nil
}

func (x *examination) lookAtDevices(driver cuda.Driver, image []byte) {
	asked := x.request.Device
	switch {
	case driver == nil && asked == nil:
	case driver == nil:
		x.add(Finding{What: "device", Device: asked, Verdict: Failed, Text: fmt.Sprintf("there is no cuda:%d without a driver", *asked), Remedy: "Leave --device out to see what there is."})
	case asked != nil:
		x.lookAt(driver, *asked, image)
	default:
		count, err := driver.Devices()
		if err != nil {
			count = 0 // the finding about the driver was made just before, and has the number
		}
		for i := range count {
			x.lookAt(driver, i, image)
		}
	}
}

// patient is one device during its examination.
type patient struct {
	*examination
	driver   cuda.Driver
	identity cuda.Identity
	context  cuda.Context
}

func (p *patient) add(f Finding) {
	f.Device = &p.identity.Ordinal
	p.examination.add(f)
}

func (p *patient) failed(what string, err error, remedy string) {
	p.add(Finding{What: what, Verdict: Failed, Text: err.Error(), Remedy: remedy})
}

func (x *examination) lookAt(driver cuda.Driver, ordinal int, image []byte) {
	p := &patient{examination: x, driver: driver, identity: cuda.Identity{Ordinal: ordinal}}
	var err error
	if p.identity, err = cuda.Identify(driver, ordinal); err != nil {
		p.identity.Ordinal = ordinal
		p.failed("device", err, "Name one that the process sees, or look at CUDA_VISIBLE_DEVICES.")
		return
	}
	if p.context, err = driver.RetainPrimary(ordinal); err != nil {
		p.failed("device", err, "See with nvidia-smi whether others fill its memory, have it to themselves, or whether it needs a reset.")
		return
	}
	if p.lookAtIdentity() && image != nil && p.loads(image) && p.lookAtPath(image) {
		x.report.GPUs++
	}
	if err := driver.ReleasePrimary(ordinal); err != nil {
		p.failed("device", err, "Restart the process; if it stays, the GPU needs a reset.")
	}
}

// scarce divides a device's memory: less free memory than this part of it is little.
const scarce = 16

// lookAtIdentity tells whether stores can use the device.
func (p *patient) lookAtIdentity() bool {
	id := p.identity
	free, total, err := p.driver.MemoryInfo(p.context)
	if err != nil {
		p.failed("device", err, "See what the kernel's log says of NVRM; the GPU may need a reset.")
		return false
	}
	node := id.NUMANode
	if g, known := p.known(id); known && node < 0 {
		node = g.NUMA
	}
	f := Finding{What: "device", Verdict: OK, Facts: map[string]any{
		"name": id.Name, "uuid": id.UUID, "pci": id.PCI, "compute_capability": fmt.Sprintf("%d.%d", id.Major, id.Minor), "processors": id.Processors,
		"copy_engines": id.CopyEngines, "numa_node": node, "mig": id.Slice, "free_bytes": free, "total_bytes": total,
	}}
	f.Text = fmt.Sprintf("%s, compute capability %d.%d, %s of %s free, %s", id.Name, id.Major, id.Minor, quantity.Sized(free), quantity.Sized(total), id.PCI)
	if node >= 0 {
		f.Text += fmt.Sprintf(", NUMA node %d", node)
	}
	if id.Slice {
		f.Text += ", a slice of a GPU (MIG)"
	}
	usable := id.Usable()
	switch {
	case usable != nil:
		f.Verdict, f.Text, f.Remedy = Failed, usable.Error(), "Host and disk tiers work; the device tier wants another GPU, or another profile of this one."
	case free < total/scarce:
		f.Verdict, f.Remedy = Warning, "Little of its memory is free: end what uses it (nvidia-smi lists it), or give the device tier a small budget."
	}
	p.add(f)
	return usable == nil
}

// loads tells whether the kernels load on the device.
func (p *patient) loads(image []byte) bool {
	module, err := p.driver.LoadModule(p.context, image)
	if err != nil {
		p.failed("kernels", err, reinstall)
		return false
	}
	var failed []error
	for _, name := range kernel.Names() {
		if _, err := p.driver.Function(p.context, module, name); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	failed = append(failed, p.driver.UnloadModule(p.context, module))
	if err := errors.Join(failed...); err != nil {
		p.failed("kernels", err, reinstall)
		return false
	}
	p.add(Finding{What: "kernels", Verdict: OK, Text: fmt.Sprintf("%d functions loaded", len(kernel.Names()))})
	return true
}

// lookAtPath opens the device as a store does, pins memory and copies.
func (p *patient) lookAtPath(image []byte) bool {
	opened, err := cuda.Open(p.driver, p.identity.Ordinal, image)
	if err != nil {
		p.failed("device", err, "See with nvidia-smi whether others fill its memory.")
		return false
	}
	err = p.measure(opened)
	if err = errors.Join(err, opened.Close()); err == nil {
		return true
	}
	remedy := "See what the kernel's log says of NVRM; the GPU may need a reset."
	if errors.Is(err, device.ErrMemory) {
		remedy = "Its memory is full: end what uses it (nvidia-smi lists it)."
	}
	p.failed("copies", err, remedy)
	return false
}
