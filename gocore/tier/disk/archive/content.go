package archive

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"github.com/zeebo/xxh3"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/durable"
)

// packBytes is how many bytes are enough for a pack. The server puts the parts of a pack together while those of the next one are sent. A pack is removed when nothing of
// it is needed any more, so smaller ones are removed sooner; more of them make the catalog of packs longer. Options of tests have another number.
const packBytes = 64 << 20

// content is what a pack is filled with: the rooms of a batch, those of one rank together, and then the lists of its keys.
type content struct {
	rooms   []*chunk
	bytes   int64 // of the rooms
	numbers []byte
	hash    *xxh3.Hasher
}

// chunk is a room on its way into a pack.
type chunk struct {
	of   *part
	move *move
	done int64
}

// lacking are the parts of a batch that the archive lacks, by the places of their ranks in Push.ranks.
func (b *bucketPush) lacking(batch []*task) [][]*part {
	all := make([][]*part, len(b.push.ranks))
	for _, t := range batch {
		for k, x := range t.parts {
			if !x.known {
				all[t.ranks[k]] = append(all[t.ranks[k]], x)
			}
		}
	}
	return all
}

// pack says where the rooms of parts lie in packs, of which the first begins at an offset of the space. The parts are those of some ranks, by rank.
func (b *bucketPush) pack(parts [][]*part, start int64) (all []*content) {
	var to *content
	enough := cmp.Or(b.push.o.packBytes, packBytes)
	for _, x := range slices.Concat(parts...) {
		x.seen = durable.NewStream(&x.row)
		for n := range x.news {
			if to == nil || to.bytes >= enough {
				to = newContent()
				all = append(all, to)
			}
			b.push.lay(x.of.number, &x.news[n], start+int64(len(all)-1)*bucket.SegmentBytes+to.bytes)
			to.add(x, &x.news[n])
		}
	}
	return all
}

func newContent() *content { return &content{hash: xxh3.New()} }

// add adds a room of a part behind the others.
func (c *content) add(x *part, m *move) {
	c.bytes += m.room.End - m.room.From
	c.rooms = append(c.rooms, &chunk{of: x, move: m})
}

// fingerprint tells contents apart before their bytes are read: it hashes which rows of which stores the bytes belong to, and where they lie there.
func (c *content) fingerprint() uint64 {
	hash := xxh3.New()
	for _, x := range c.rooms {
		store := x.of.of.from.About().Store
		p := append([]byte(nil), store[:]...)
		for _, n := range []uint64{uint64(x.of.of.number), x.of.row.Serial, uint64(x.move.room.From), uint64(x.move.room.End)} {
			p = binary.LittleEndian.AppendUint64(p, n)
		}
		_, _ = hash.Write(p) // it never fails
	}
	_, _ = hash.Write(c.numbers)
	return hash.Sum64()
}

// filling is the content as a pack that can be uploaded.
func (c *content) filling(as *bucket.Pack) bucket.Filling {
	for _, x := range c.rooms {
		x.of.of.from.Space().Grow(x.move.room.End)
	}
	return bucket.Filling{Pack: as, Fill: c.fill}
}

// bytesAndLists is the length of the pack.
func (c *content) bytesAndLists() int64 { return c.bytes + int64(len(c.numbers)) }

func (c *content) draft() bucket.Draft {
	return bucket.Draft{Bytes: c.bytesAndLists(), Content: c.fingerprint()}
}

func endOf(x *part) (end int64) {
	for _, r := range x.rooms {
		end = max(end, r.End)
	}
	return end
}

// fill fills a buffer with the next bytes. What cannot be read of a store is damage of the part, or its error, and zeros take its place: its key is not committed.
func (c *content) fill(p []byte) error {
	for len(p) > 0 && len(c.rooms) > 0 {
		x := c.rooms[0]
		rest := x.move.room.End - x.move.room.From - x.done
		some := p[:min(int64(len(p)), rest, copyBytes)]
		c.read(x, some)
		x.done += int64(len(some))
		p = p[len(some):]
		if int64(len(some)) == rest {
			c.end(x)
			c.rooms = c.rooms[1:]
		}
	}
	n := copy(p, c.numbers)
	c.numbers = c.numbers[n:]
	return nil
}

func (c *content) read(x *chunk, p []byte) {
	part := x.of
	if part.row.Stored() == 0 || part.wrong || part.gone || part.err != nil {
		clear(p)
		return
	}
	if err := part.of.from.Space().Read(x.move.room.From+x.done, p); err != nil {
		part.unread(err)
		clear(p)
		return
	}
	if part.seen != nil {
		part.seen.Take(p)
	} else {
		_, _ = c.hash.Write(p) // it never fails
	}
}

// end compares the bytes of a room that are no plain ones with those that were verified.
func (c *content) end(x *chunk) {
	if x.of.seen == nil && x.of.row.Stored() > 0 && !x.of.gone && x.of.err == nil && c.hash.Sum64() != x.move.sum {
		x.of.wrong = true
	}
	c.hash.Reset()
}

// prove compares those of the parts whose bytes are not plain with their checksums, in the ranks' stores, and notes which bytes these are.
func prove(writers int, parts []*part) error {
	var all []*part
	for _, x := range parts {
		if durable.NewStream(&x.row) == nil {
			x.checked = true
			all = append(all, x)
		}
	}
	return workers(writers, len(all), func(mine iter.Seq[int]) (err error) {
		buffer, err := memory.Map(bufferPurpose, copyBytes)
		if err != nil {
			return err
		}
		verifiers := map[*rank]*durable.Verifier{}
		defer func() {
			for _, v := range verifiers {
				err = errors.Join(err, v.Close())
			}
			err = errors.Join(err, buffer.Unmap())
		}()
		for i := range mine {
			x := all[i]
			if verifiers[x.of] == nil {
				if verifiers[x.of], err = x.of.from.Verifier(); err != nil {
					return err
				}
			}
			x.prove(verifiers[x.of], buffer.Bytes(0, copyBytes))
		}
		return nil
	})
}

// prove verifies one part.
func (x *part) prove(v *durable.Verifier, buffer []byte) {
	x.of.from.Space().Grow(endOf(x))
	for i := range x.news {
		if err := x.news[i].hash(x, buffer); err != nil {
			x.unread(err)
			return
		}
	}
	if x.wrong = !v.Stands(&x.row); !x.wrong && x.row.Sums == nil {
		x.err = x.of.from.NamesStore(x.rooms)
	}
}

// hash sets the sum of a room.
func (m *move) hash(x *part, buffer []byte) error {
	if x.row.Stored() == 0 {
		return nil
	}
	hash := xxh3.New()
	for off := m.room.From; off < m.room.End; off += copyBytes {
		p := buffer[:min(copyBytes, m.room.End-off)]
		if err := x.of.from.Space().Read(off, p); err != nil {
			return err
		}
		_, _ = hash.Write(p) // it never fails
	}
	m.sum = hash.Sum64()
	return nil
}
