package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
)

// A process that plans may die, or give a push up, while other ranks still write what it has planned: no lock of its ends with their writes. So the room of a plan is
// recorded before any rank gets the plan, and given up when all ranks have reported. A later push leaves out what an earlier one has recorded and not given up.

// reservedName is the file of the record: ends of rooms in the space of the archive, by file, and a checksum.
const reservedName = "reserved"

const reservedMagic = "VELOCRSV"

// reservation is the record in a directory.
type reservation struct {
	fs  vfs.FS
	dir string
}

func (r reservation) name() string { return filepath.Join(r.dir, reservedName) }

// read returns the ends that are recorded. known is false if the record is damaged: its writer died, and no rank got the plan of it, but what was recorded before is lost.
func (r reservation) read() (ends []int64, known bool, err error) {
	file, err := r.fs.Open(r.name(), false, false)
	if errors.Is(err, unix.ENOENT) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil || size < 24 || size > 24+8*MostFiles {
		return nil, false, err
	}
	p := make([]byte, size)
	if _, err := file.ReadAt(p, 0); err != nil {
		if vfs.Unreadable(err) {
			return nil, false, nil
		}
		return nil, false, err
	}
	count := binary.LittleEndian.Uint64(p[8:])
	if string(p[:8]) != reservedMagic || count > uint64(size-24)/8 {
		return nil, false, nil
	}
	body := p[:16+8*count]
	if binary.LittleEndian.Uint64(p[len(body):]) != xxh3.Hash(body) {
		return nil, false, nil
	}
	for i := range count {
		ends = append(ends, int64(binary.LittleEndian.Uint64(body[16+8*i:])))
	}
	return ends, true, nil
}

// write records ends, and returns when they are on the medium.
func (r reservation) write(ends []int64) (err error) {
	file, err := r.fs.Open(r.name(), true, false)
	made := errors.Is(err, unix.ENOENT)
	if made {
		file, err = r.fs.Create(r.name(), false)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = fmt.Errorf("%s: %w", r.name(), err)
		}
	}()
	p := binary.LittleEndian.AppendUint64([]byte(reservedMagic), uint64(len(ends)))
	for _, end := range ends {
		p = binary.LittleEndian.AppendUint64(p, uint64(end))
	}
	if _, err := file.WriteAt(binary.LittleEndian.AppendUint64(p, xxh3.Hash(p)), 0); err != nil {
		return err
	}
	if err := file.Sync(); err != nil || !made {
		return err
	}
	return r.fs.SyncDir(r.dir)
}

// skip moves the ends of files behind the room that an earlier push has planned, and of which it is unknown whether somebody still writes to it.
func (p *Push) skip() error {
	ends, known, err := p.reserved.read()
	if err != nil {
		return err
	}
	if !known {
		ends = nil
		for file := range p.ends {
			bytes, err := p.to.FileBytes(int64(file))
			if err != nil {
				return err
			}
			ends = append(ends, int64(file)*segmentBytes+bytes)
		}
	}
	for file := range min(len(ends), len(p.ends)) {
		p.ends[file] = max(p.ends[file], ends[file])
	}
	p.skipped = ends
	return nil
}

// reserve records the room of a plan beside what earlier pushes have recorded.
func (p *Push) reserve() error {
	ends := append([]int64(nil), p.ends...)
	for file := len(ends); file < len(p.skipped); file++ {
		ends = append(ends, p.skipped[file])
	}
	p.planning = true
	return p.reserved.write(ends)
}

// release gives up the room that this push has recorded, if no rank writes to it any more. What earlier pushes have left stays recorded.
func (p *Push) release() error {
	if !p.planning || p.under != nil {
		return nil
	}
	return p.reserved.write(p.skipped)
}
