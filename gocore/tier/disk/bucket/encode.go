package bucket

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/zeebo/xxh3"
)

// id names an object that is written once.
type id [16]byte

func (i id) String() string { return hex.EncodeToString(i[:]) }

// Pack is an object with bytes of checkpoints: the data file of a number.
type Pack struct {
	Number uint64 `json:"number"` // of the data file, from 1 on
	Commit uint64 `json:"commit"` // that was to name it, when it was planned: a part of its key
	ID     id     `json:"id"`
	Bytes  int64  `json:"bytes"`
}

func (x *Pack) key() string { return fmt.Sprintf("%s%016x-%s", packsAt, ^x.Commit, x.ID) }

// alike is how the keys of packs begin that were planned for this commit with this content.
func (x *Pack) alike() string { return strings.TrimSuffix(x.key(), x.ID.String()[16:]) }

// idOf is the ID in a pack's key.
func idOf(key string) (i id, ok bool) {
	_, digits, _ := strings.Cut(key, "-")
	p, err := hex.DecodeString(digits)
	return i, err == nil && copy(i[:], p) == len(i) && len(p) == len(i)
}

// file is a file of the catalog.
type file struct {
	number uint64
	bytes  []byte
}

// document is a commit, or a whole catalog.
type document struct {
	store  [16]byte
	number uint64 // of the commit; of a whole catalog, the last commit that it has
	mark   id     // drawn by its writer, which tells its own document from another's by it
	base   id     // of a commit: the whole catalog that it relies on; zero: none
	bytes  int64  // length of that one's object
	packs  []Pack // of a commit: those that the whole catalog lacks
	files  []file // likewise
}

const (
	magic         = "VELOCS3\x00"
	formatVersion = 1
	frontBytes    = 8 + 4 + 4 + 16 + 8 + 16 + 16 + 8
	packBytes     = 8 + 8 + 16 + 8
	fileFront     = 8 + 8
	countBytes    = 8
	sumBytes      = 8
)

func (d *document) encode() []byte {
	p := append([]byte(nil), magic...)
	p = binary.LittleEndian.AppendUint32(p, formatVersion)
	p = binary.LittleEndian.AppendUint32(p, 0)
	p = append(p, d.store[:]...)
	p = binary.LittleEndian.AppendUint64(p, d.number)
	p = append(p, d.mark[:]...)
	p = append(p, d.base[:]...)
	p = binary.LittleEndian.AppendUint64(p, uint64(d.bytes))
	p = binary.LittleEndian.AppendUint64(p, uint64(len(d.packs)))
	for _, x := range d.packs {
		p = binary.LittleEndian.AppendUint64(p, x.Number)
		p = binary.LittleEndian.AppendUint64(p, x.Commit)
		p = append(p, x.ID[:]...)
		p = binary.LittleEndian.AppendUint64(p, uint64(x.Bytes))
	}
	p = binary.LittleEndian.AppendUint64(p, uint64(len(d.files)))
	for _, f := range d.files {
		p = binary.LittleEndian.AppendUint64(p, f.number)
		p = binary.LittleEndian.AppendUint64(p, uint64(len(f.bytes)))
		p = append(p, f.bytes...)
	}
	return binary.LittleEndian.AppendUint64(p, xxh3.Hash(p))
}

// decode is the inverse of encode. The files' bytes are parts of p.
func decode(p []byte) (d document, err error) {
	if len(p) < frontBytes+2*countBytes+sumBytes || string(p[:8]) != magic {
		return d, fmt.Errorf("%w: an object is no commit and no catalog", ErrDamaged)
	}
	body, sum := p[:len(p)-sumBytes], binary.LittleEndian.Uint64(p[len(p)-sumBytes:])
	if xxh3.Hash(body) != sum {
		return d, fmt.Errorf("%w: a commit or catalog has other bytes than were written", ErrDamaged)
	}
	if v := binary.LittleEndian.Uint32(p[8:]); v != formatVersion || binary.LittleEndian.Uint32(p[12:]) != 0 {
		return d, fmt.Errorf("%w: its commits have version %d, this library knows version %d", ErrVersion, v, formatVersion)
	}
	c := cursor{p: body[16:]}
	copy(d.store[:], c.take(16))
	d.number = c.number()
	copy(d.mark[:], c.take(16))
	copy(d.base[:], c.take(16))
	d.bytes = int64(c.number())
	for range c.count(packBytes) {
		x := Pack{Number: c.number(), Commit: c.number()}
		copy(x.ID[:], c.take(16))
		x.Bytes = int64(c.number())
		if x.Number == 0 || x.Number > mostPacks || x.Bytes < 0 || x.Bytes > SegmentBytes {
			c.bad = true
		}
		d.packs = append(d.packs, x)
	}
	for range c.count(fileFront) {
		f := file{number: c.number()}
		f.bytes = c.take(int64(c.number()))
		d.files = append(d.files, f)
	}
	if c.bad || len(c.p) > 0 || d.bytes < 0 {
		return d, fmt.Errorf("%w: a commit or catalog contradicts itself", ErrDamaged)
	}
	return d, nil
}

// cursor takes fields off bytes. After a field that is not there, all others are zero.
type cursor struct {
	p   []byte
	bad bool
}

func (c *cursor) take(n int64) []byte {
	if c.bad || n < 0 || n > int64(len(c.p)) {
		c.bad = true
		return nil
	}
	p := c.p[:n:n]
	c.p = c.p[n:]
	return p
}

func (c *cursor) number() uint64 {
	p := c.take(8)
	if p == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(p)
}

// count takes a number of entries that have so many bytes at least: no more than there is room for.
func (c *cursor) count(each int64) uint64 {
	n := c.number()
	if n > uint64(int64(len(c.p))/each) {
		c.bad = true
		return 0
	}
	return n
}
