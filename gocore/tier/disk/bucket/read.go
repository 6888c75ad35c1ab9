package bucket

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/wire"
)

// Places of objects under the prefix.
const (
	identityAt = "velocpy.store"
	commitsAt  = "commits/"
	catalogsAt = "catalogs/"
	packsAt    = "packs/"
)

// Limits of an archive: a data file, which is a pack, has up to SegmentBytes, and offsets in the space of a store have 62 bits.
const (
	SegmentBytes  = 1 << 40
	mostPacks     = 1 << 22
	identityBytes = 8 << 10
)

// Image is an archive as of one commit. It does not change.
type Image struct {
	at       *Bucket
	identity []byte
	store    [16]byte
	number   uint64 // of the commit; 0: there is none yet
	etag     string // of the commit's object; empty: it is not known
	base     id
	length   int64 // of the whole catalog's object
	based    int   // how many of packs and files the whole catalog has
	basedOn  int
	packs    []Pack // by number
	files    []file // by number
}

// Number is that of the image's commit; 0: the archive has none yet.
func (i *Image) Number() uint64 { return i.number }

// Place is the text that names the archive's place.
func (i *Image) Place() string { return i.at.Place() }

// commitKey is where a commit lies. The keys of later ones come first.
func commitKey(number uint64) string { return fmt.Sprintf("%s%016x", commitsAt, ^number) }

// commitOf is the inverse of commitKey.
func commitOf(key string) (uint64, bool) {
	digits := strings.TrimPrefix(key, commitsAt)
	n, err := strconv.ParseUint(digits, 16, 64)
	return ^n, err == nil && commitKey(^n) == key
}

// mostLooks is how often the newest commit is looked for that a writer replaces meanwhile.
const mostLooks = 8

// Read reads the archive as it is now: the identity, a listing, the newest commit, and the whole catalog that it relies on.
// It reads no object again that this process has read or made before.
func (b *Bucket) Read() (*Image, error) {
	if known := b.memo.last(); known != nil {
		i, err := b.readBehind(known.identity, known)
		if another := err == nil && i.number == 0 || errors.Is(err, ErrDamaged); !another {
			return i, err
		}
	}
	identity, err := b.readIdentity()
	if err != nil {
		return nil, err
	}
	return b.readBehind(identity, nil)
}

// Again reads the archive anew. What the image knows already is not read again.
func (i *Image) Again() (*Image, error) { return i.at.readBehind(i.identity, i) }

// isOf tells whether an object of a listing is the commit of an image.
func (i *Image) isOf(newest wire.Object) bool {
	return i != nil && i.etag != "" && i.etag == newest.ETag && commitKey(i.number) == newest.Key
}

func (b *Bucket) readBehind(identity []byte, known *Image) (*Image, error) {
	var last error
	for range mostLooks {
		i := &Image{at: b, identity: identity}
		copy(i.store[:], identity[16:])
		found, _, err := b.list(commitsAt, "", 1)
		if err != nil || len(found) == 0 {
			return i, err
		}
		if known.isOf(found[0]) {
			again := *known
			again.at = b
			return &again, nil
		}
		if last = i.load(found[0], known); last == nil {
			b.memo.keep(i)
			return i, nil
		}
		if !errors.Is(last, errAbsent) && !errors.Is(last, errReplaced) {
			return nil, last
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrDamaged, last)
}

// errReplaced: a commit was replaced by an empty object, as a later one relies on a later catalog.
var errReplaced = errors.New("the commit was replaced")

// Store is the number of the archive that is there.
func (b *Bucket) Store() (store [16]byte, err error) {
	identity, err := b.readIdentity()
	if err == nil {
		copy(store[:], identity[16:])
	}
	return store, err
}

func (b *Bucket) readIdentity() ([]byte, error) {
	p := make([]byte, identityBytes+1)
	n, err := b.get(identityAt, 0, p)
	if errors.Is(err, errAbsent) {
		found, _, failed := b.list("", "", 1)
		if failed == nil && len(found) == 0 {
			failed = fmt.Errorf("%s: %w", b.Place(), ErrNone)
		}
		if failed != nil {
			return nil, failed
		}
		n, err = b.get(identityAt, 0, p) // another process may have made it since
		if errors.Is(err, errAbsent) {
			return nil, fmt.Errorf("%s: %w", b.Place(), ErrForeign)
		}
	}
	if err == nil && n != identityBytes {
		err = fmt.Errorf("%w: its identity has %s", ErrDamaged, quantity.Exact(int64(n)))
	}
	return p[:identityBytes], err
}

// load reads a commit and its catalog.
func (i *Image) load(newest wire.Object, known *Image) error {
	number, ok := commitOf(newest.Key)
	if !ok {
		return fmt.Errorf("%w: %q is no key of a commit", ErrDamaged, newest.Key)
	}
	if newest.Bytes == 0 {
		return errReplaced
	}
	commit, err := i.at.document(newest.Key, newest.Bytes)
	if err != nil {
		return err
	}
	if commit.store != i.store || commit.number != number {
		return fmt.Errorf("%w: %q is the commit of another archive, or of another number", ErrDamaged, newest.Key)
	}
	i.number, i.etag, i.base, i.length = number, newest.ETag, commit.base, commit.bytes
	switch {
	case i.base == id{}:
	case known != nil && known.base == i.base:
		i.packs, i.files = known.packs[:known.based:known.based], known.files[:known.basedOn:known.basedOn]
	default:
		whole, err := i.at.document(catalogsAt+i.base.String(), i.length)
		if err != nil {
			return err
		}
		if whole.store != i.store || whole.base != (id{}) {
			return fmt.Errorf("%w: the catalog %s is another archive's", ErrDamaged, i.base)
		}
		i.packs, i.files = whole.packs, whole.files
	}
	i.based, i.basedOn = len(i.packs), len(i.files)
	i.packs, i.files = append(slices.Clip(i.packs), commit.packs...), append(slices.Clip(i.files), commit.files...)
	if !slices.IsSortedFunc(i.packs, func(a, b Pack) int { return cmp.Compare(a.Number, b.Number) }) {
		return fmt.Errorf("%w: its packs are not in order", ErrDamaged)
	}
	return nil
}

// Parts in which a large object is read, and how often one is read whose bytes are not those that were written.
const (
	getBytes  = 16 << 20
	mostReads = 3
)

// document reads a commit or a whole catalog.
func (b *Bucket) document(key string, bytes int64) (d document, err error) {
	if bytes > wire.MostBody {
		return d, fmt.Errorf("%w: %q is too long", ErrDamaged, key)
	}
	for range mostReads {
		var p []byte
		if p, err = b.object(key, bytes); err != nil {
			return d, err
		}
		if len(p) == 0 {
			return d, errReplaced
		}
		if d, err = decode(p); !errors.Is(err, ErrDamaged) {
			return d, err
		}
	}
	return d, fmt.Errorf("%s/%s: %w", b.Place(), key, err)
}

// object reads an object of so many bytes, or fewer. Parts of a long one are read at once.
func (b *Bucket) object(key string, bytes int64) ([]byte, error) {
	p := make([]byte, bytes)
	if bytes <= getBytes {
		n, err := b.get(key, 0, p)
		return p[:n], err
	}
	count := (bytes + getBytes - 1) / getBytes
	came := make(chan error, count)
	for k := range count {
		safego.Go("bucket reader", func() {
			err := safego.ErrPoisoned
			defer func() { came <- err }()
			part := p[k*getBytes : min((k+1)*getBytes, bytes)]
			n, failed := b.get(key, k*getBytes, part)
			if err = failed; err == nil && n < len(part) {
				err = errReplaced
			}
		})
	}
	var errs []error
	for range count {
		errs = append(errs, <-came)
	}
	return p, errors.Join(errs...)
}
