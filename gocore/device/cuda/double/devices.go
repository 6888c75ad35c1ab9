package double

import "velocpy/gocore/device/cuda"

// devices describes the devices, and counts the users of their contexts.
type devices struct {
	*state
}

func (ds *devices) device(call string, number int) (*gpu, error) {
	if err := ds.enter(call); err != nil {
		return nil, err
	}
	if number < 0 || number >= len(ds.gpus) {
		return nil, fail(call, cuda.InvalidDevice)
	}
	return ds.gpus[number], nil
}

// Version implements cuda.Driver.
func (ds *devices) Version() (int, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.cfg.Version, ds.enter("Version")
}

// Devices implements cuda.Driver.
func (ds *devices) Devices() (int, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return len(ds.gpus), ds.enter("Devices")
}

// DeviceName implements cuda.Driver.
func (ds *devices) DeviceName(number int) (string, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	_, err := ds.device("DeviceName", number)
	return "Double", err
}

// DeviceUUID implements cuda.Driver.
func (ds *devices) DeviceUUID(number int) ([16]byte, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	_, err := ds.device("DeviceUUID", number)
	return [16]byte{0: 0xD0, 15: byte(number)}, err
}

// DeviceAttribute implements cuda.Driver.
func (ds *devices) DeviceAttribute(a cuda.Attribute, number int) (int, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if _, err := ds.device("DeviceAttribute", number); err != nil {
		return 0, err
	}
	if v, ok := ds.cfg.Attributes[a]; ok {
		return v, nil
	}
	switch a {
	case cuda.ComputeMajor:
		return 9, nil
	case cuda.Processors:
		return 132, nil
	case cuda.PCIBus:
		return 0x10 + number, nil
	case cuda.SupportsVMM:
		return 1, nil
	case cuda.CopyEngines:
		return 3, nil
	}
	return 0, nil
}

// RetainPrimary implements cuda.Driver.
func (ds *devices) RetainPrimary(number int) (cuda.Context, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	g, err := ds.device("RetainPrimary", number)
	if err != nil {
		return 0, err
	}
	g.retained++
	return g.context(), nil
}

// ReleasePrimary implements cuda.Driver.
func (ds *devices) ReleasePrimary(number int) error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	g, err := ds.device("ReleasePrimary", number)
	if err != nil {
		return err
	}
	if g.retained == 0 {
		ds.checks.wrong("ReleasePrimary of device %d, which nobody retains", number)
		return fail("ReleasePrimary", cuda.InvalidContext)
	}
	g.retained--
	return nil
}

// MemoryInfo implements cuda.Driver.
func (ds *devices) MemoryInfo(c cuda.Context) (free, total int64, err error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	g, err := ds.within("MemoryInfo", c)
	if err != nil {
		return 0, 0, err
	}
	return ds.free(g), ds.cfg.Memory, nil
}

func (ds *devices) free(g *gpu) int64 { return max(0, ds.cfg.Memory-g.used-g.occupied) }
