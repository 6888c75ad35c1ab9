package cuda

import (
	"fmt"
	"unsafe"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/kernel"
)

// UseDedup tells where the image of the kernels of de-duplication comes from. load is called once, by the first Dedup, which waits for it and for the driver.
// Without it, or if load fails, that returns device.ErrDedup.
func (d *Device) UseDedup(load func() (image []byte, err error)) { d.dedup.use(load) }

// found implements device.Found. Its words are counts, which a kernel writes, and behind them what the host writes and a copy moves to the device.
type found struct{ results }

// Take implements device.Found.
func (f *found) Take() device.DedupCounts {
	if f.words.none() {
		return device.DedupCounts{}
	}
	counts := kernel.DedupCounts(f.words.onHost())
	f.Discard()
	return counts
}

// Dedup implements device.Lane. If the copy or some of the launches fail, the words stay unused: no event tells when they have been read and written.
func (l *lane) Dedup(c *device.Deduplication) (device.Found, error) {
	if err := device.CheckDedup(c); err != nil {
		return nil, fmt.Errorf("%s: %w", l.d.Name(), err)
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	functions, err := l.d.dedup.functions()
	if err != nil {
		return nil, err
	}
	upload := kernel.DedupUpload(c)
	words, err := l.d.pinned.take(kernel.DedupResults + int(upload/8))
	if err != nil {
		return nil, err
	}
	if upload > 0 {
		at := words.onHost()[kernel.DedupResults:]
		kernel.PutDedupUpload(c, unsafe.Slice((*byte)(unsafe.Pointer(&at[0])), upload))
		if err := l.copy(c.Scratch, words.at+8*kernel.DedupResults, upload); err != nil {
			return nil, err
		}
	}
	err = l.planned(functions, func(p *kernel.Plan) { p.Dedup(c, l.d.identity.Processors, words.at) })
	if err != nil {
		return nil, err
	}
	return &found{results{l.d, words}}, nil
}

// GatherFirsts implements device.Lane.
func (l *lane) GatherFirsts(c *device.Deduplication) error {
	if err := l.open(); err != nil {
		return err
	}
	functions, err := l.d.dedup.functions()
	if err != nil {
		return err
	}
	return l.planned(functions, func(p *kernel.Plan) { p.GatherFirsts(c, l.d.identity.Processors) })
}
