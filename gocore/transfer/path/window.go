package path

import (
	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/numa"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/device"
)

// window is how many bytes of a checkpoint a path holds beside the cache at once. A source may gather one region more.
const window = 8 << 20

// throughWindow moves bytes that the host can address neither in the source nor in the sink.
func (p *Path) throughWindow() error {
	end := p.version.Layout.End()
	buffer, err := memory.Map("spill window", window)
	if err != nil {
		return status.Wrap(status.IO, err, "cannot map %s beside the cache", quantity.Sized(int64(window)))
	}
	defer func() { _ = buffer.Unmap() }() // mapped here; no other goroutine uses it
	if a := p.c.DeviceOf(p.x.Rec); a != nil {
		numa.Place("a spill's window", buffer.Bytes(0, window), device.Nodes([]device.Device{a.Device})...)
	}
	for at := int64(0); at == 0 || at < end; at += window { // also of a checkpoint without bytes, which has checksums
		part := buffer.Bytes(0, min(window, end-at))
		some := false
		if err := p.source.Read(at, part, func(int64, int64) { some = true }); err != nil {
			return err
		}
		if !some || len(part) == 0 {
			continue // no region reaches into this part of the slot
		}
		if err := p.sink.Write(at, part); err != nil {
			return err
		}
	}
	return nil
}
