package workers

import (
	"errors"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier/disk/segment"
)

// writeToDisk writes a checkpoint of the host tier to the disk. For a disk tier that outlives the store, a second goroutine verifies the bytes
// meanwhile. They must not become durable unless they are still the captured bytes.
func (s *Workers) writeToDisk(x *engine.Transfer, b *checkpoint.Version) (leaves []uint64, err error) {
	slot := s.Host.Bytes(x.FromOff, x.Rec.Size)
	if !s.Disk.Durable() || !b.HasLeaves() {
		return nil, s.writeWanted(x.ToOff, slot, b)
	}
	var bad error
	hashed := make(chan struct{})
	safego.Go("leaves", func() {
		defer close(hashed)
		leaves, bad = b.Leaves(slot)
	})
	err = s.writeWanted(x.ToOff, slot, b)
	<-hashed
	if bad != nil {
		err = bad
	}
	return leaves, err
}

// writeWanted writes a checkpoint to the disk, and stops when the version is gone.
func (s *Workers) writeWanted(at int64, slot []byte, b *checkpoint.Version) error {
	err := s.Disk.Space.WriteWhile(func() bool { return !b.Gone.Load() }, at, slot)
	if errors.Is(err, segment.ErrUnwanted) {
		return engine.ErrStopped
	}
	return s.DiskError(err)
}
