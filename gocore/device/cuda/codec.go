package cuda

import (
	"fmt"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda/kernel"
)

// UseCodec tells where the image of the codec's kernels comes from. load is called once, by the first Encode or Decode, which waits for it and for the
// driver. Without it, or if load fails, these return device.ErrCodec.
func (d *Device) UseCodec(load func() (image []byte, err error)) { d.codec.use(load) }

// results are words of pinned memory, one for each container.
type results struct {
	d     *Device
	words block
}

// Discard implements device.Lengths and device.Faults.
func (r *results) Discard() {
	r.d.pinned.give(r.words)
	r.words = block{}
}

// lengths are those of encoded containers.
type lengths struct{ results }

// Take implements device.Lengths.
func (l *lengths) Take() []int64 {
	if l.words.none() {
		return nil
	}
	all := make([]int64, l.words.words)
	for i, n := range l.words.onHost() {
		all[i] = int64(n)
	}
	l.Discard()
	return all
}

// faults are words that are not 0 for damaged containers.
type faults struct{ results }

// Take implements device.Faults.
func (f *faults) Take() (bad []int) {
	if f.words.none() {
		return nil
	}
	for i, fault := range f.words.onHost() {
		if fault != 0 {
			bad = append(bad, i)
		}
	}
	f.Discard()
	return bad
}

// Encode implements device.Lane. Kernels write the lengths to pinned memory.
func (l *lane) Encode(all []device.Container, scratch device.Address) (device.Lengths, error) {
	if err := device.CheckEncode(all, scratch); err != nil {
		return nil, fmt.Errorf("%s: %w", l.d.Name(), err)
	}
	r, err := l.codec(len(all), func(p *kernel.Plan, results device.Address) { p.Encode(all, scratch, results) })
	if err != nil {
		return nil, err
	}
	return &lengths{r}, nil
}

// Decode implements device.Lane. Kernels write the words of damaged containers only.
func (l *lane) Decode(all []device.Container, scratch device.Address) (device.Faults, error) {
	if err := device.CheckDecode(all, scratch); err != nil {
		return nil, fmt.Errorf("%s: %w", l.d.Name(), err)
	}
	r, err := l.codec(len(all), func(p *kernel.Plan, results device.Address) { p.Decode(all, scratch, results) })
	if err != nil {
		return nil, err
	}
	return &faults{r}, nil
}

// codec launches kernels with a result for each container, which is 0 before. If some of the launches fail, the words of the others stay unused: no event
// tells when they have been written.
func (l *lane) codec(count int, prepare func(*kernel.Plan, device.Address)) (results, error) {
	if err := l.open(); err != nil {
		return results{}, err
	}
	functions, err := l.d.codec.functions()
	if err != nil || count == 0 {
		return results{d: l.d}, err
	}
	words, err := l.d.pinned.take(count)
	if err != nil {
		return results{}, err
	}
	clear(words.onHost())
	err = l.planned(functions, func(p *kernel.Plan) { prepare(p, words.at) })
	return results{l.d, words}, err
}
