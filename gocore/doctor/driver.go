package doctor

import (
	"errors"
	"fmt"
	"strings"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/topology"
)

// lookAtDriver returns the driver, or nil when there is none.
func (x *examination) lookAtDriver() cuda.Driver {
	driver, err := x.Driver()
	if err != nil {
		x.add(x.noDriver(err))
		return nil
	}
	version, err := driver.Version()
	count, failed := driver.Devices()
	if err = errors.Join(err, failed); err != nil {
		x.add(Finding{What: "driver", Verdict: Failed, Text: err.Error(), Remedy: "See whether nvidia-smi works, and what the kernel's log says of NVRM."})
		return nil
	}
	f := Finding{What: "driver", Verdict: OK, Facts: map[string]any{"cuda": version, "visible": count}}
	f.Text = fmt.Sprintf("CUDA %d.%d, %s visible", version/1000, version%1000/10, counted(count))
	if x.Hidden != nil {
		f.Text += fmt.Sprintf(" (CUDA_VISIBLE_DEVICES is %q)", *x.Hidden)
		f.Facts["cuda_visible_devices"] = *x.Hidden
	}
	x.add(f)
	return driver
}

func counted(gpus int) string {
	if gpus == 1 {
		return "1 GPU"
	}
	return fmt.Sprintf("%d GPUs", gpus)
}

// noDriver distinguishes a machine without a GPU from one with a broken driver. The remedy is the text behind the last colon of the error.
func (x *examination) noDriver(err error) Finding {
	f := Finding{What: "driver", Verdict: Failed, Text: strings.TrimPrefix(err.Error(), device.ErrUnavailable.Error()+": ")}
	if i := strings.LastIndex(f.Text, ": "); i >= 0 {
		f.Text, f.Remedy = f.Text[:i], sentence(f.Text[i+2:])
	}
	hidden := x.Hidden != nil
	switch {
	case errors.Is(err, cuda.ErrNoLibrary), errors.Is(err, cuda.ErrNoDevice) && !hidden:
		f.Verdict = Absent
	case errors.Is(err, cuda.ErrNoDevice):
		f.Verdict = Warning // the GPUs are hidden, perhaps on purpose
	}
	return f
}

func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func (x *examination) lookAtTopology() {
	const what = "management library"
	source, err := x.Topology()
	var version string
	var gpus []topology.GPU
	if err == nil {
		x.source = source
		version, err = source.Driver()
	}
	if err == nil {
		gpus, err = source.GPUs()
	}
	if err != nil {
		x.add(Finding{
			What: what, Verdict: Absent, Text: strings.TrimPrefix(err.Error(), topology.ErrUnknown.Error()+": "),
			Remedy: "Everything works without NVML; links and faults of GPUs stay unknown. In a container, NVIDIA_DRIVER_CAPABILITIES has to contain utility.",
		})
		return
	}
	x.add(Finding{
		What: what, Verdict: OK, Text: fmt.Sprintf("NVML of driver %s, %s in this machine", version, counted(len(gpus))),
		Facts: map[string]any{"driver": version, "gpus": len(gpus)},
	})
}

func (x *examination) closeTopology() {
	if x.source != nil {
		_ = x.source.Close() // no later call uses it
	}
}

// known returns the topology's present data about a device. Numbers of devices do not match, since the driver hides devices from the process and NVML
// does not. A slice of a GPU has its own UUID, and the PCI address of the GPU.
func (x *examination) known(id cuda.Identity) (topology.GPU, bool) {
	if x.source == nil {
		return topology.GPU{}, false
	}
	gpus, err := x.source.GPUs()
	if err != nil {
		return topology.GPU{}, false
	}
	for _, g := range gpus {
		if g.UUID == id.UUID || id.Slice && g.PCI == id.PCI {
			return g, true
		}
	}
	return topology.GPU{}, false
}
