package cuda

import (
	"fmt"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/kernel"
)

// kernels are the functions of our module by name.
type kernels map[string]Function

func (d *Device) loadKernels(image []byte) error {
	if len(image) == 0 {
		return fmt.Errorf("%s: %w: the package's kernels are missing: install velocpy anew", d.Name(), device.ErrUnavailable)
	}
	var err error
	if d.module, err = d.driver.LoadModule(d.context, image); err != nil {
		return fmt.Errorf("%s: %w: the package's kernels do not fit: %w", d.Name(), device.ErrUnavailable, err)
	}
	d.kernels = kernels{}
	for _, name := range kernel.Names() {
		if d.kernels[name], err = d.driver.Function(d.context, d.module, name); err != nil {
			return fmt.Errorf("%s: %w: the package's kernels lack %s: install velocpy anew: %w", d.Name(), device.ErrUnavailable, name, err)
		}
	}
	return nil
}

func (d *Device) unloadKernels() error {
	if d.module == 0 {
		return nil
	}
	return d.check("kernels given back", d.driver.UnloadModule(d.context, d.module))
}

// launch launches the kernels of a plan in the lane.
func (l *lane) launch(functions kernels, plan *kernel.Plan) error {
	for _, k := range plan.Launches() {
		err := l.d.driver.Launch(l.d.context, functions[k.Kernel], k.Blocks, k.Threads, k.Shared, l.stream, k.Parameter)
		if err != nil {
			return l.d.check(k.Kernel, err)
		}
	}
	return nil
}
