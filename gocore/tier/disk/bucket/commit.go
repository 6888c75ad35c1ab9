package bucket

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"

	"velocpy/gocore/tier/disk/journal"
)

// Make makes an archive under the prefix, unless there is one. Only one of several callers makes it, and all of them find the same one afterwards. identity is
// the content of the identity's object of a new one.
func (b *Bucket) Make(identity []byte) error {
	_, err := b.readIdentity()
	if !errors.Is(err, ErrNone) {
		return err
	}
	if err := b.put(identityAt, identity, true); err != nil && !errors.Is(err, errExists) {
		return err
	}
	return nil
}

// Change is what a commit changes.
type Change struct {
	Record []byte  // of the catalog
	Packs  []*Pack // that were uploaded for it, by their numbers
}

// mostTail is how long the commits may become, beside the whole catalog, before a whole one is written.
const mostTail = 1 << 20

// draw draws an id.
func draw() (drawn id, err error) {
	_, err = rand.Read(drawn[:])
	return drawn, err
}

// Commit makes the next commit, and returns the archive as it is then. It fails with ErrConflict if another writer has made that commit. After another error
// it is unknown whether the commit counts: Read tells.
func (i *Image) Commit(c *Change) (*Image, error) {
	number := i.number + 1
	f, err := journal.BatchFile(i.store, number, [][]byte{c.Record})
	if err != nil {
		return nil, err
	}
	next := *i
	next.number, next.etag = number, ""
	next.packs = i.packs[:len(i.packs):len(i.packs)]
	for _, x := range c.Packs {
		next.packs = append(next.packs, *x)
	}
	next.files = append(i.files[:len(i.files):len(i.files)], file{number, f})
	if err := next.put(); err != nil {
		return nil, err
	}
	i.at.memo.keep(&next)
	return &next, nil
}

// put makes the object of an image's commit.
func (i *Image) put() error {
	mark, err := draw()
	if err != nil {
		return err
	}
	d := document{store: i.store, number: i.number, mark: mark, base: i.base, bytes: i.length, packs: i.packs[i.based:], files: i.files[i.basedOn:]}
	p, key := d.encode(), commitKey(i.number)
	failed := i.at.put(key, p, true)
	if failed == nil {
		return nil
	}
	// A reply may be lost on its way, and the request be repeated: the object tells whose commit it is.
	there := make([]byte, len(p)+1)
	n, err := i.at.get(key, 0, there)
	switch {
	case err == nil && bytes.Equal(there[:n], p):
		return nil
	case err == nil || errors.Is(failed, errExists):
		return fmt.Errorf("%s: %w", i.at.Place(), ErrConflict)
	}
	return failed
}

// tail is the length of the newest commit beside the whole catalog.
func (i *Image) tail() (length int64) {
	for _, f := range i.files[i.basedOn:] {
		length += int64(len(f.bytes))
	}
	return length + int64(len(i.packs)-i.based)*packBytes
}

// Grown tells whether the commits have become so long that a whole catalog is worth its upload. live is the length of that.
func (i *Image) Grown(live int64) bool { return i.tail() > max(mostTail, live/8) }

// Whole writes a whole catalog, which the next commits rely on. keep tells which packs are needed; nil: all. records gives the records of the catalog.
func (i *Image) Whole(records func(give func(record []byte) error) error, keep func(number uint64) bool) (*Image, error) {
	if i.number == 0 {
		return i, nil // there is nothing that it could have
	}
	whole, err := draw()
	if err != nil {
		return nil, err
	}
	f, err := journal.SnapshotFile(i.store, i.number, records)
	if err != nil {
		return nil, err
	}
	next := *i.Without(keep)
	next.files = []file{{i.number, f}}
	d := document{store: i.store, number: i.number, mark: whole, packs: next.packs, files: next.files}
	p := d.encode()
	if err := i.at.put(catalogsAt+whole.String(), p, true); err != nil {
		return nil, err
	}
	next.base, next.length, next.based, next.basedOn = whole, int64(len(p)), len(next.packs), 1
	return &next, nil
}

// Without returns the image without the packs that are not needed. keep tells which are; nil: all. No commit of it can be made.
func (i *Image) Without(keep func(number uint64) bool) *Image {
	next := *i
	next.packs = nil
	for _, x := range i.packs {
		if keep == nil || keep(x.Number) {
			next.packs = append(next.packs, x)
		}
	}
	return &next
}
