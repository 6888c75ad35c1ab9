package durable

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"velocpy/gocore/base/killpoint"
	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/tier/disk/segment"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"
)

// The identity makes a directory a store. One file, written once, has two copies of the same block. A second file has a third copy, at another place of the
// medium. Stores of older versions get the second file when they are first opened for writing.
const (
	identityName  = "velocpy.store"
	copyName      = "velocpy.copy"
	identityMagic = "VELOCPY\x00"
	formatVersion = 1
	identityBytes = 56   // of a copy: the rest of the block is zero
	identityCopy  = 4096 // length of a copy, and offset of the second one
)

// Features that a reader must support beside the version, as bits. Stores of version 0.1 have none.
const (
	flagHeads = 1 << 0 // data files have heads
	flagIndex = 1 << 1 // … and indexes after the heads
	// flagCommits: … and commit areas after the indexes; the newest catalog records may be in one of them.
	flagCommits = 1 << 2
)

type identity struct {
	store   [16]byte
	segment int64 // length of the segment in a data file
	heads   bool  // data files have heads
	index   bool  // … and indexes after the heads
	commits bool  // … and commit areas after the indexes
}

func (i *identity) bytes() []byte {
	p := append(make([]byte, 0, identityCopy), identityMagic...)
	p = binary.LittleEndian.AppendUint32(p, formatVersion)
	p = binary.LittleEndian.AppendUint32(p, 0)
	p = append(p, i.store[:]...)
	p = binary.LittleEndian.AppendUint64(p, uint64(i.segment))
	flags := uint64(0)
	if i.heads {
		flags |= flagHeads
	}
	if i.index {
		flags |= flagIndex
	}
	if i.commits {
		flags |= flagCommits
	}
	p = binary.LittleEndian.AppendUint64(p, flags)
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
	flags := binary.LittleEndian.Uint64(p[40:])
	if v := binary.LittleEndian.Uint32(p[8:]); v != formatVersion || binary.LittleEndian.Uint32(p[12:]) != 0 {
		return i, fmt.Errorf("%w: its format has version %d, this library knows version %d", ErrVersion, v, formatVersion)
	}
	if unknown := flags &^ (flagHeads | flagIndex | flagCommits); unknown != 0 {
		return i, fmt.Errorf("%w: it has features %#x that this library does not know", ErrVersion, unknown)
	}
	i.heads, i.index, i.commits = flags&flagHeads != 0, flags&flagIndex != 0, flags&flagCommits != 0
	if i.index && !i.heads || i.commits && !i.index {
		return i, fmt.Errorf("%w: data files with indexes and without heads, or with commit areas and without indexes", errIdentity)
	}
	copy(i.store[:], p[16:])
	i.segment = int64(binary.LittleEndian.Uint64(p[32:]))
	if i.segment < segment.Block || i.segment > mostSegment || i.segment%segment.Block != 0 {
		return i, fmt.Errorf("%w: data files of %d bytes", errIdentity, i.segment)
	}
	return i, nil
}

// PlainIdentity returns the content of the identity's file for a new store whose data files have segments of this length, and nothing before them.
func PlainIdentity(segment int64) ([]byte, error) {
	i := madeBare.identity(segment)
	if _, err := rand.Read(i.store[:]); err != nil {
		return nil, err
	}
	block := i.bytes()
	return append(block, block...), nil
}

// mostSegment keeps sums of offsets within 64 bits.
const mostSegment = 1 << 50

var identityCopies = [...]struct {
	file string
	at   int64
	name string
}{
	{identityName, 0, "the first copy of the identity"},
	{identityName, identityCopy, "the second copy of the identity"},
	{copyName, 0, "the third copy of the identity"},
}

// badCopy is a damaged copy of the identity; another copy is intact.
type badCopy struct {
	file string
	at   int64
	why  error
}

// found is the identity of a store, with its damaged copies.
type found struct {
	identity
	bad   []badCopy
	alone bool // the second file was never written: an older version made the store, or its maker died
}

var (
	errAbsent = errors.New("there is no file of that name")
	errBlank  = errors.New("it was never written")
)

// readIdentity reads the identity. It reads the copies one by one, so that an unreadable sector costs only one of them. The copies of the first file take
// precedence; if both are wrong, the second file counts.
func readIdentity(o *Options) (found, error) {
	var all [len(identityCopies)]identity
	var wrong [len(identityCopies)]error
	for k := 0; k < len(identityCopies); {
		n, fatal := readCopies(o, identityCopies[k].file, all[k:], wrong[k:])
		if fatal != nil {
			return found{}, fatal
		}
		k += n
	}
	right := slices.Index(wrong[:], nil)
	absent, outside := errors.Is(wrong[0], errAbsent), wrong[2]
	switch {
	case errors.Is(wrong[0], ErrVersion):
		return found{}, fmt.Errorf("%s: %w", o.Dir, wrong[0])
	case errors.Is(wrong[1], ErrVersion):
		return found{}, fmt.Errorf("%s: %w", o.Dir, wrong[1])
	case right < 0 && absent && !errors.Is(outside, ErrVersion):
		return found{}, fmt.Errorf("%s: %w: %s: %w", o.Dir, ErrNoStore, identityName, unix.ENOENT)
	case right < 0:
		return found{}, o.noIdentity(wrong[:])
	case right == 0 && wrong[1] == nil && all[0] != all[1]:
		return found{}, fmt.Errorf("%s: %w: the two copies of its identity differ", o.Dir, ErrDamaged)
	case outside == nil && all[2] != all[right]:
		wrong[2] = errors.New("it is another store's")
	}
	f := found{identity: all[right], alone: errors.Is(outside, errAbsent) || errors.Is(outside, errBlank)}
	for k, c := range identityCopies {
		//mutation:second-identity-ignored
		again := k == 1 && absent || k == 2 && f.alone // reported with the first copy, or not damage
		if wrong[k] != nil && !again {
			f.bad = append(f.bad, badCopy{c.file, c.at, fmt.Errorf("%s: %w", c.name, wrong[k])})
		}
	}
	return f, nil
}

// noIdentity returns the error for a store without an intact copy. An unreadable copy may be intact, so a read error takes precedence over damage.
func (o *Options) noIdentity(wrong []error) error {
	why := wrong[0]
	for _, err := range wrong {
		switch {
		case errors.Is(err, ErrVersion):
			return fmt.Errorf("%s: %w", o.Dir, err)
		case vfs.Unreadable(err):
			why = err
		}
	}
	if vfs.Unreadable(why) {
		return fmt.Errorf("%s: no copy of the identity can be read: %w", o.Dir, why)
	}
	return fmt.Errorf("%s: %w: %s: %w", o.Dir, ErrDamaged, identityName, why)
}

// readCopies reads the copies in a file, one by one, and returns their expected number. wrong receives the reason why a copy is not valid.
func readCopies(o *Options, name string, all []identity, wrong []error) (n int, fatal error) {
	n = map[string]int{identityName: 2, copyName: 1}[name]
	file, err := o.FS.Open(o.path(name), false, false)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		err = errAbsent
	case err == nil:
		defer func() { _ = file.Close() }() // nothing was written to it
	case !vfs.Unreadable(err):
		return n, err
	}
	for k := range n {
		if wrong[k] = err; err != nil {
			continue
		}
		if all[k], wrong[k], fatal = readCopy(file, int64(k)*identityCopy, name == copyName); fatal != nil {
			return n, fatal
		}
	}
	return n, nil
}

// readCopy reads a copy. If blank is set, a copy that its writer did not finish counts as never written.
func readCopy(file vfs.File, at int64, blank bool) (i identity, wrong, fatal error) {
	p := make([]byte, identityCopy)
	n, err := file.ReadAt(p, at)
	switch {
	//mutation:unreadable-identity-copy-fatal
	case vfs.Unreadable(err):
		return i, err, nil
	case err != nil && !errors.Is(err, io.EOF):
		return i, nil, err
	}
	if clear(p[n:]); blank && (n < len(p) || !slices.ContainsFunc(p, func(b byte) bool { return b != 0 })) {
		return i, errBlank, nil
	}
	i, wrong = parseIdentity(p)
	return i, wrong, nil
}

// makeIdentity makes the directory a store, unless it is one. While the directory has no other files, the process that wrote the identity may have died
// before it synced it, even if the file system shows it. The identity is then written again.
func makeIdentity(o *Options) error {
	f, err := readIdentity(o)
	missing, damaged := errors.Is(err, ErrNoStore), errors.Is(err, ErrDamaged)
	if err != nil && !missing && !damaged {
		return err
	}
	others, err2 := stored(o)
	switch {
	case err2 != nil || others && !missing:
		if err = errors.Join(err, err2); err == nil && f.alone {
			addCopy(o, &f.identity)
		}
		return err
	case others:
		return fmt.Errorf("%s: %w: there are files of a store, but %s is missing", o.Dir, ErrDamaged, identityName)
	case !missing:
		// The sync keeps removed files of the store from coming back without its identity.
		if err := o.FS.SyncDir(o.Dir); err != nil {
			return err
		}
		if err := removeAny(o, identityName); err != nil {
			return err
		}
	}
	if err != nil {
		f.identity = o.made.identity(cmp.Or(o.SegmentBytes, segment.DefaultSegmentBytes))
		if _, err := rand.Read(f.identity.store[:]); err != nil {
			return err
		}
	}
	if missing {
		killpoint.Pass(killpoint.DirectoryMade)
	}
	if err := writeIdentity(o, &f.identity); err != nil {
		return err
	}
	addCopy(o, &f.identity)
	return syncAbove(o)
}

// writeIdentity creates the first file.
func writeIdentity(o *Options, i *identity) error {
	block := i.bytes()
	return writeBlocks(o, identityName, append(block, block...))
}

// addCopy creates the second file. The store works without it: on a full disk, the next open for writing creates it.
func addCopy(o *Options, i *identity) {
	if err := writeCopy(o, i); err != nil {
		logring.Add(logring.Warning, "the third copy of the identity in "+o.Dir+" could not be written: "+err.Error())
	}
}

// writeCopy recreates the second file. The caller has synced the first file before.
func writeCopy(o *Options, i *identity) error {
	if err := removeAny(o, copyName); err != nil {
		return err
	}
	return writeBlocks(o, copyName, i.bytes())
}

// removeAny removes a file if there is one.
func removeAny(o *Options, name string) error {
	if err := o.FS.Remove(o.path(name)); !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

func writeBlocks(o *Options, name string, blocks []byte) error {
	file, err := o.FS.Create(o.path(name), false)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(blocks, 0)
	killpoint.Pass(killpoint.IdentityWritten)
	if err == nil {
		//mutation:identity-unsynced
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	//mutation:identity-name-unsynced
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

// syncAbove syncs the parents of a new store, so that its directory survives a crash. A process that died may have made the directory or a parent before. A
// parent that this user may not read was made by another user, and needs no sync.
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
