package cuda

import (
	"fmt"

	"velocpy/gocore/device"
)

// Encode fails: the package has no kernels of the codec.
func (l *lane) Encode([]device.Container, device.Address) (device.Lengths, error) {
	return nil, fmt.Errorf("%s: %w: the package has no kernels of the codec", l.d.Name(), device.ErrCodec)
}

// Decode fails likewise.
func (l *lane) Decode([]device.Container, device.Address) (device.Faults, error) {
	return nil, fmt.Errorf("%s: %w: the package has no kernels of the codec", l.d.Name(), device.ErrCodec)
}
