package archive

import (
	"errors"
	"iter"

	"github.com/zeebo/xxh3"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/tier/disk/durable"
)

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

// pack says where the rooms of a batch lie in a pack that begins at an offset of the space.
func (b *bucketPush) pack(batch []*task, start int64) *content {
	p, to := b.push, &content{hash: xxh3.New()}
	for i := range p.ranks {
		for _, t := range batch {
			for k, x := range t.parts {
				if t.ranks[k] != i || x.known {
					continue
				}
				x.of.from.Space().Grow(endOf(x))
				x.seen = durable.NewStream(&x.row)
				for n := range x.news {
					m := &x.news[n]
					p.lay(x.of.number, m, start+to.bytes)
					to.bytes += m.room.End - m.room.From
					to.rooms = append(to.rooms, &chunk{of: x, move: m})
				}
			}
		}
	}
	p.refer(batch)
	return to
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
	if part.row.Stored() == 0 || part.wrong || part.err != nil {
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
	if x.of.seen == nil && x.of.row.Stored() > 0 && x.of.err == nil && c.hash.Sum64() != x.move.sum {
		x.of.wrong = true
	}
	c.hash.Reset()
}

// prove compares the parts of a batch whose bytes are not plain with their checksums, in the ranks' stores, and notes which bytes these are.
func (b *bucketPush) prove(batch []*task) error {
	var all []*part
	for _, t := range batch {
		for _, x := range t.parts {
			if !x.known && durable.NewStream(&x.row) == nil {
				x.checked = true
				all = append(all, x)
			}
		}
	}
	return b.push.o.workers(len(all), func(mine iter.Seq[int]) (err error) {
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
