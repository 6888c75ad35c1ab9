package durable

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"velocpy/gocore/killpoint"
	"velocpy/gocore/segment"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"
)

// The identity is what a directory is a store by: one file with two copies of the same block, written once.
const (
	identityName  = "velocpy.store"
	identityMagic = "VELOCPY\x00"
	formatVersion = 1
	identityBytes = 56   // of a copy that mean something
	identityCopy  = 4096 // where the second copy begins
)

type identity struct {
	store   [16]byte
	segment int64 // length of a data file
}

func (i *identity) bytes() []byte {
	p := append(make([]byte, 0, identityCopy), identityMagic...)
	p = binary.LittleEndian.AppendUint32(p, formatVersion)
	p = binary.LittleEndian.AppendUint32(p, 0)
	p = append(p, i.store[:]...)
	p = binary.LittleEndian.AppendUint64(p, uint64(i.segment))
	p = binary.LittleEndian.AppendUint64(p, 0) // what a reader must know beside the version: nothing
	p = binary.LittleEndian.AppendUint64(p, xxh3.Hash(p))
	return append(p, make([]byte, identityCopy-len(p))...)
}

var errIdentity = errors.New("not what a store's identity is")

func parseIdentity(p []byte) (i identity, err error) {
	if len(p) != identityCopy || string(p[:8]) != identityMagic || binary.LittleEndian.Uint64(p[48:]) != xxh3.Hash(p[:48]) {
		return i, errIdentity
	}
	for _, b := range p[identityBytes:] {
		if b != 0 {
			return i, errIdentity
		}
	}
	if v := binary.LittleEndian.Uint32(p[8:]); v != formatVersion || binary.LittleEndian.Uint32(p[12:]) != 0 || binary.LittleEndian.Uint64(p[40:]) != 0 {
		return i, fmt.Errorf("%w: its format has version %d, this library knows version %d", ErrVersion, v, formatVersion)
	}
	copy(i.store[:], p[16:])
	i.segment = int64(binary.LittleEndian.Uint64(p[32:]))
	if i.segment < segment.Block || i.segment > mostSegment || i.segment%segment.Block != 0 {
		return i, fmt.Errorf("%w: data files of %d bytes", errIdentity, i.segment)
	}
	return i, nil
}

// mostSegment keeps sums of places in 64 bits.
const mostSegment = 1 << 50

// readIdentity reads the identity; spare is what is wrong with one of its copies, at spareAt, while the other one is right.
func readIdentity(o *Options) (i identity, spareAt int64, spare, err error) {
	file, err := o.FS.Open(o.path(identityName), false, false)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return i, 0, nil, fmt.Errorf("%s: %w: %w", o.Dir, ErrNoStore, err)
	}
	if err != nil {
		return i, 0, nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	var p [2 * identityCopy]byte
	if n, err := file.ReadAt(p[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return i, 0, nil, err
	} else if n < len(p) {
		clear(p[n:])
	}
	first, wrong := parseIdentity(p[:identityCopy])
	second, alsoWrong := parseIdentity(p[identityCopy:])
	switch {
	case errors.Is(wrong, ErrVersion):
		return i, 0, nil, fmt.Errorf("%s: %w", o.Dir, wrong)
	case errors.Is(alsoWrong, ErrVersion):
		return i, 0, nil, fmt.Errorf("%s: %w", o.Dir, alsoWrong)
	case wrong == nil && alsoWrong == nil && first != second:
		return i, 0, nil, fmt.Errorf("%s: %w: the two copies of its identity differ", o.Dir, ErrDamaged)
	case wrong == nil:
		if alsoWrong != nil {
			spare = fmt.Errorf("the second copy of the identity: %w", alsoWrong)
		}
		return first, identityCopy, spare, nil
	case alsoWrong == nil:
		return second, 0, fmt.Errorf("the first copy of the identity: %w", wrong), nil
	}
	return i, 0, nil, fmt.Errorf("%s: %w: %s: %w", o.Dir, ErrDamaged, identityName, wrong)
}

// makeIdentity makes the directory a store, unless it is one. As long as there is nothing else in it, who wrote the identity may have died before it was on
// the medium, whatever the system shows: then it is written anew.
func makeIdentity(o *Options) error {
	i, _, _, err := readIdentity(o)
	missing, damaged := errors.Is(err, ErrNoStore), errors.Is(err, ErrDamaged)
	if err != nil && !missing && !damaged {
		return err
	}
	others, err2 := stored(o)
	switch {
	case err2 != nil || others && !missing:
		return errors.Join(err, err2)
	case others:
		return fmt.Errorf("%s: %w: there are files of a store, but %s is missing", o.Dir, ErrDamaged, identityName)
	case !missing:
		// What was removed of the store must not come back without its identity.
		if err := o.FS.SyncDir(o.Dir); err != nil {
			return err
		}
		if err := o.FS.Remove(o.path(identityName)); err != nil {
			return err
		}
	}
	if err != nil {
		i.segment = cmp.Or(o.SegmentBytes, segment.DefaultSegmentBytes)
		if _, err := rand.Read(i.store[:]); err != nil {
			return err
		}
	}
	if missing {
		killpoint.Pass(killpoint.DirectoryMade)
	}
	if err := writeIdentity(o, &i); err != nil {
		return err
	}
	return syncAbove(o)
}

func writeIdentity(o *Options, i *identity) error {
	file, err := o.FS.Create(o.path(identityName), false)
	if err != nil {
		return err
	}
	block := i.bytes()
	_, err = file.WriteAt(append(block, block...), 0)
	killpoint.Pass(killpoint.IdentityWritten)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return o.FS.SyncDir(o.Dir)
}

// stored tells whether a directory has files that hold a store's data.
func stored(o *Options) (bool, error) {
	names, err := o.FS.List(o.Dir)
	for _, name := range names {
		if strings.HasPrefix(name, "catalog-") || strings.HasPrefix(name, "data-") {
			return true, err
		}
	}
	return false, err
}

// syncAbove sees to it that the directory of a new store is still there after a crash. It, or one that it lies in, may have been made by whoever died before
// this; one that this user may not read was not.
func syncAbove(o *Options) error {
	for dir := filepath.Clean(o.Dir); dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		err := o.above.SyncDir(dir)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
