package doctor

import (
	"errors"
	"fmt"
	"time"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/device"
)

// bench is a device with two pieces of its memory, two of pinned and one of pageable host memory.
type bench struct {
	*patient
	dev              device.Device
	arena            device.Arena
	pinned, pageable *memory.Mapping
	pins             bool
	lanes            [2]device.Lane
}

// measure examines pinning, copies and, while it is active, the link.
func (p *patient) measure(dev device.Device) error {
	b := &bench{patient: p, dev: dev}
	err := b.prepare()
	if err == nil && (p.request.Rates == nil || *p.request.Rates) {
		err = b.lookAtCopies()
	} else if err == nil {
		b.lookAtLink()
	}
	return errors.Join(err, b.free())
}

func (b *bench) prepare() error {
	var err error
	if b.pinned, err = memory.Map("doctor", 2*b.Piece); err != nil {
		return err
	}
	if b.pageable, err = memory.Map("doctor", b.Piece); err != nil {
		return err
	}
	if err := errors.Join(b.pinned.Populate(0, 2*b.Piece), b.pageable.Populate(0, b.Piece)); err != nil {
		return err
	}
	if b.arena, err = b.dev.Reserve(2 * b.Piece); err != nil {
		return err
	}
	for b.arena.Mapped() < 2*b.Piece {
		if _, err := b.arena.Grow(2 * b.Piece); err != nil {
			return err
		}
	}
	for i := range b.lanes {
		if b.lanes[i], err = b.dev.Lane(device.Waited); err != nil {
			return err
		}
	}
	return b.lookAtPinning()
}

func (b *bench) lookAtPinning() error {
	began := b.Now()
	err := b.dev.Pin(b.pinned, 0, 2*b.Piece)
	took := b.Now().Sub(began)
	switch {
	case err == nil:
		b.pins = true
		b.add(Finding{
			What: "pinning", Verdict: OK, Text: fmt.Sprintf("%s registered in %.1f ms", quantity.Sized(2*b.Piece), took.Seconds()*1e3),
			Facts: map[string]any{"bytes": 2 * b.Piece, "seconds": took.Seconds()},
		})
		return nil
	case errors.Is(err, device.ErrPinning):
		b.add(Finding{
			What: "pinning", Verdict: Warning, Text: err.Error(),
			Remedy: "Stores work with pageable memory, several times slower: raise ulimit -l and the memory limit of the container.",
		})
		return nil
	}
	return err
}

// free waits for queued work and releases all resources. After the context was lost, only the mappings can be released.
func (b *bench) free() error {
	var failed []error
	for _, l := range b.lanes {
		if l != nil {
			failed = append(failed, wait(l), l.Close())
		}
	}
	if b.pins {
		failed = append(failed, b.dev.Unpin(b.pinned, 0, 2*b.Piece))
	}
	if b.arena != nil {
		failed = append(failed, b.arena.Free())
	}
	for _, m := range []*memory.Mapping{b.pinned, b.pageable} {
		if m != nil {
			failed = append(failed, m.Unmap())
		}
	}
	return errors.Join(failed...)
}

func wait(l device.Lane) error {
	m, err := l.Event()
	if err != nil {
		return err
	}
	defer m.Drop()
	return m.Wait()
}

// move is one copy of a piece.
type move struct{ to, from device.Address }

// most bounds how many copies are queued at once.
const most = 256

// rate returns the bytes per second of moves that run in parallel, each in its own lane. The first round warms up, and determines the number of
// rounds that fit the time.
func (b *bench) rate(moves ...move) (float64, error) {
	once, err := b.run(1, moves)
	if err != nil {
		return 0, err
	}
	times := int(min(max(b.Long/once, 1), most))
	took, err := b.run(times, moves)
	return float64(b.Piece) * float64(times*len(moves)) / took.Seconds(), err
}

func (b *bench) run(times int, moves []move) (time.Duration, error) {
	began := b.Now()
	for range times {
		for i, m := range moves {
			if err := b.lanes[i].Copy(m.to, m.from, b.Piece); err != nil {
				return 1, err
			}
		}
	}
	for i := range moves {
		if err := wait(b.lanes[i]); err != nil {
			return 1, err
		}
	}
	return max(b.Now().Sub(began), 1), nil
}

// lookAtCopies measures and judges copies. Copies within the device count their bytes once, although they read and write.
func (b *bench) lookAtCopies() error {
	near, far := b.arena.Base(), b.arena.Base()+device.Address(b.Piece)
	host, other := device.Address(b.pinned.Base()), device.Address(b.pinned.Base())+device.Address(b.Piece)
	pageable := device.Address(b.pageable.Base())
	facts := map[string]any{}
	rates := map[string]float64{}
	for _, r := range []struct {
		name   string
		pinned bool
		moves  []move
	}{
		{"to_host", true, []move{{host, near}}}, {"to_device", true, []move{{far, other}}}, {"both", true, []move{{host, near}, {far, other}}},
		{"pageable_to_host", false, []move{{pageable, near}}}, {"pageable_to_device", false, []move{{far, pageable}}},
		{"within", false, []move{{far, near}}},
	} {
		if r.pinned && !b.pins {
			continue
		}
		got, err := b.rate(r.moves...)
		if err != nil {
			return fmt.Errorf("copies %s: %w", r.name, err)
		}
		rates[r.name], facts[r.name] = got, got
	}
	f := Finding{What: "copies", Verdict: OK, Facts: facts}
	if b.pins {
		f.Text = fmt.Sprintf("pinned %s to the host, %s to the device, %s both at once; ", quantity.Rate(rates["to_host"]), quantity.Rate(rates["to_device"]), quantity.Rate(rates["both"]))
	}
	f.Text += fmt.Sprintf("pageable %s and %s; within the device %s", quantity.Rate(rates["pageable_to_host"]), quantity.Rate(rates["pageable_to_device"]), quantity.Rate(rates["within"]))
	link, known := b.lookAtLink()
	if b.pins && known {
		b.judge(&f, rates, link.Rate())
	}
	b.add(f)
	return nil
}

// fairShare is the part of a healthy link's rate that copies reach. fairGain is how much more both directions together carry than one.
const (
	fairShare = 0.7
	fairGain  = 1.2
)

func (b *bench) judge(f *Finding, rates map[string]float64, link float64) {
	slower, faster := min(rates["to_host"], rates["to_device"]), max(rates["to_host"], rates["to_device"])
	switch {
	case slower < fairShare*link:
		f.Verdict = Warning
		f.Remedy = fmt.Sprintf("The link could carry %s: see whether others use it now, whether the process runs near the GPU (numactl), and whether an IOMMU or a virtual machine is in between.", quantity.Rate(link))
	case rates["both"] < fairGain*faster:
		f.Verdict = Warning
		f.Remedy = "Both ways at once carry hardly more than one, so that flush and prefetch slow each other: this is usual with one copy engine or in virtual machines."
	}
}
