package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/segment"
)

// A process that plans may die, or give a push up, while leaders still write what it has planned: its lock of the archive does not wait for them. So the room of a plan
// is recorded before any rank gets the plan, and given up when all ranks have reported. A later push avoids what an earlier one has recorded and not given up.

// The record is in two files, which are written by turns: a process that dies while it writes one leaves the other, with the record before. No rank has got
// the plan of the record that was not written.
var reservedNames = [2]string{"reserved-0", "reserved-1"}

const (
	reservedMagic = "VELOCRSV"
	reservedFront = 24 // magic, number of the record, count of ends
)

// reservation is the record in a directory: ends of rooms in the space of the archive, by file.
type reservation struct {
	fs     vfs.FS
	dir    string
	number uint64 // of the latest record
}

// read returns the latest ends. known is false if there was a record once, and both files are damaged.
func (r *reservation) read() (ends []int64, known bool, err error) {
	known = true
	found := false
	for _, name := range reservedNames {
		number, got, state, err := r.readOne(filepath.Join(r.dir, name))
		switch {
		case err != nil:
			return nil, false, err
		case state == recordDamaged:
			known = false
		case state == recordWhole && (!found || number > r.number):
			found, ends, r.number = true, got, number
		}
	}
	return ends, known || found, nil
}

// record is what one of the two files has.
type record int

const (
	recordMissing record = iota
	recordWhole
	recordDamaged
)

func (r *reservation) readOne(name string) (number uint64, ends []int64, _ record, err error) {
	file, err := r.fs.Open(name, false, false)
	if errors.Is(err, unix.ENOENT) {
		return 0, nil, recordMissing, nil
	}
	if err != nil {
		return 0, nil, 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return 0, nil, 0, err
	}
	if size < reservedFront+8 || size > reservedFront+8+8*MostFiles {
		return 0, nil, recordDamaged, nil
	}
	p := make([]byte, size)
	if _, err := file.ReadAt(p, 0); vfs.Unreadable(err) {
		return 0, nil, recordDamaged, nil
	} else if err != nil {
		return 0, nil, 0, err
	}
	number, count := binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[16:])
	if string(p[:8]) != reservedMagic || count > uint64(size-reservedFront-8)/8 {
		return 0, nil, recordDamaged, nil
	}
	body := p[:reservedFront+8*count]
	if binary.LittleEndian.Uint64(p[len(body):]) != xxh3.Hash(body) {
		return 0, nil, recordDamaged, nil
	}
	for i := range count {
		ends = append(ends, int64(binary.LittleEndian.Uint64(body[reservedFront+8*i:])))
	}
	return number, ends, recordWhole, nil
}

// write records ends, and returns when they are on the medium.
func (r *reservation) write(ends []int64) (err error) {
	r.number++
	name := filepath.Join(r.dir, reservedNames[r.number%2])
	file, err := r.fs.Open(name, true, false)
	made := errors.Is(err, unix.ENOENT)
	if made {
		file, err = r.fs.Create(name, false)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	p := binary.LittleEndian.AppendUint64([]byte(reservedMagic), r.number)
	p = binary.LittleEndian.AppendUint64(p, uint64(len(ends)))
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

// avoid raises the ends of files behind the room that an earlier push has planned: a leader may still be writing to it. If the record is damaged, it raises them
// behind everything that any data file has.
func (p *Push) avoid() error {
	ends, known, err := p.reserved.read()
	if err != nil {
		return err
	}
	if !known {
		if ends, err = p.fileEnds(); err != nil {
			return err
		}
	}
	for file := range min(len(ends), len(p.ends)) {
		p.ends[file] = max(p.ends[file], ends[file])
	}
	p.avoided = ends
	return nil
}

// fileEnds returns, by file, the end of what a data file can have by its length.
func (p *Push) fileEnds() (ends []int64, err error) {
	lengths, err := p.to.Lengths()
	if err != nil {
		return nil, err
	}
	for file, bytes := range lengths {
		for int64(len(ends)) <= file {
			ends = append(ends, int64(len(ends))*segmentBytes)
		}
		ends[file] += segment.Blocks(bytes)
	}
	return ends, nil
}

// reserve records the room of a plan beside what earlier pushes have recorded.
func (p *Push) reserve() error {
	ends := append([]int64(nil), p.ends...)
	for file := len(ends); file < len(p.avoided); file++ {
		ends = append(ends, p.avoided[file])
	}
	p.planning = true
	return p.reserved.write(ends)
}

// release gives up the room that this push has recorded, if no rank writes to it any more. What earlier pushes have left stays recorded.
func (p *Push) release() error {
	if !p.planning || p.under != nil {
		return nil
	}
	return p.reserved.write(p.avoided)
}
