package cuda

import (
	"errors"
	"fmt"
	"sync"
)

// optional are the kernels of a module of its own. The first call that needs them loads them: most processes need none.
type optional struct {
	d      *Device
	of     string   // what they are the kernels of
	names  []string // of all of them
	absent error    // of a call that needs them where there are none

	mu     sync.Mutex
	load   func() (image []byte, err error)
	tried  bool
	err    error
	module Module
	loaded kernels
}

// use tells where the image comes from. load is called once.
func (o *optional) use(load func() (image []byte, err error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.load, o.tried = load, false
}

// functions returns the kernels. An error is permanent.
func (o *optional) functions() (kernels, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.loaded == nil && !o.tried {
		o.tried = true
		o.loaded, o.err = o.fetch()
	}
	return o.loaded, o.err
}

func (o *optional) fetch() (kernels, error) {
	if o.load == nil {
		return nil, fmt.Errorf("%s: %w: nothing tells where its kernels are", o.d.Name(), o.absent)
	}
	image, err := o.load()
	if err == nil && len(image) == 0 {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: its kernels cannot be read: %w", o.d.Name(), o.absent, err)
	}
	if o.module, err = o.d.driver.LoadModule(o.d.context, image); err != nil {
		return nil, o.without("its kernels do not fit", err)
	}
	functions := kernels{}
	for _, name := range o.names {
		if functions[name], err = o.d.driver.Function(o.d.context, o.module, name); err != nil {
			return nil, o.without("its kernels lack "+name+": install velocpy anew", err)
		}
	}
	return functions, nil
}

// without is the error of a failed call of the driver: that of absent kernels, or the loss of the context.
func (o *optional) without(what string, err error) error {
	if err = o.d.check(what, err); o.d.Lost() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", o.absent, err)
}

func (o *optional) unload() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.module == 0 {
		return nil
	}
	return o.d.check("kernels of "+o.of+" given back", o.d.driver.UnloadModule(o.d.context, o.module))
}
