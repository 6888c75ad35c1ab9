package path

import (
	"errors"

	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk"
	"velocpy/gocore/tier/disk/segment"
)

// diskSource is a slot of the disk tier.
type diskSource struct {
	p  *Path
	at int64 // offset of the slot
}

func (d diskSource) prepare() error { return nil }
func (d diskSource) close()         {}

func (d diskSource) Bytes() []byte { return nil }

func (d diskSource) Read(at int64, to []byte, arrived func(at, n int64)) error {
	disk := d.p.c.Disk
	err := disk.Space.ReadPieces(d.at+at, to, arrived)
	verified := d.p.c.Set.Verifies != config.VerifyOff && d.p.version.Sums != nil
	if err == nil && !verified { // no checksum tells whose bytes these are, so the files must
		err = disk.Space.Proves(d.at+at, int64(len(to)))
	}
	return disk.ReadError(err)
}

// holds returns an error if the files lack spans of the slot. A catalog may list more than the files hold.
func (d diskSource) holds(spans []model.Span) error {
	disk := d.p.c.Disk
	if !disk.Durable() {
		return nil
	}
	for _, span := range spans {
		if err := disk.Space.Holds(d.at+span.Offset, span.Bytes); err != nil {
			return disk.ReadError(err)
		}
	}
	return nil
}

// diskSink is room of the disk tier.
type diskSink struct {
	disk   *disk.Tier
	at     int64
	wanted func() bool // writes stop when it returns false; nil: they do not
}

func (d diskSink) Bytes() []byte { return nil }

func (d diskSink) Write(at int64, p []byte) error {
	err := d.disk.Space.WriteWhile(d.wanted, d.at+at, p)
	if errors.Is(err, segment.ErrUnwanted) {
		return engine.ErrStopped
	}
	return d.disk.Error(err)
}
