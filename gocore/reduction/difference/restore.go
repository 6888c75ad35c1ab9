package difference

import (
	"fmt"

	"velocpy/gocore/reduction/digest"
)

// Reader fills p with first occurrences of a checkpoint, from an offset on. In the serialised difference they begin at MetadataBytes.
type Reader func(checkpoint uint32, offset uint64, p []byte) error

// Restore fills dst with a region's bytes, of which it reads each at most once: region is its index, dst has its size, and m is the difference's own map. It then
// verifies the region's checksum, and fails with ErrChecksum if a duplicate was none or a read gave wrong bytes. After an error dst has no meaning.
func (d *Difference) Restore(m *Map, region int, dst []byte, read Reader) error {
	r := &d.Regions[region]
	if m == nil || m.Checkpoint != d.Checkpoint || m.Find(r.Name) == nil || uint64(len(dst)) != r.Size {
		return fmt.Errorf("%w: restore of region %q", ErrBase, r.Name)
	}
	if err := m.Find(r.Name).Read(0, dst, read); err != nil {
		return fmt.Errorf("region %q: %w", r.Name, err)
	}
	if digest.New(d.Kind, d.Seed).Sum(dst) != r.Checksum {
		return fmt.Errorf("%w: the checksum of region %q differs", ErrChecksum, r.Name)
	}
	return nil
}

// Read fills dst with the region's bytes from an offset on, without a check. It reads each run with one call, and a source that repeats once.
func (l *Located) Read(from uint64, dst []byte, read Reader) error {
	if from > l.Size || uint64(len(dst)) > l.Size-from {
		return fmt.Errorf("%w: a range behind the region's end", ErrBase)
	}
	var err error
	l.Each(from, from+uint64(len(dst)), func(r Run, n uint64) bool {
		if r.Checkpoint == Void {
			err = ErrVoid
			return false
		}
		part := dst[r.At-from:][:n]
		source := part
		if r.Period > 0 {
			source = part[:min(n, uint64(r.Period))]
		}
		if err = read(r.Checkpoint, r.Offset, source); err != nil {
			err = fmt.Errorf("%w: checkpoint %d, offset %d: %w", ErrRead, r.Checkpoint, r.Offset, err)
		}
		for done := len(source); done < len(part); done *= 2 {
			copy(part[done:], part[:done])
		}
		return err == nil
	})
	return err
}
