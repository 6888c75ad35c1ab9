package object

import (
	"errors"

	"velocpy/gocore/reduction/codec"
)

// lose leaves what cannot be decoded of a container to Elsewhere, after an error. It returns the error that ends the call of Decode.
func (d *decoder) lose(pieces []piece, encoded, plain []byte, err error) error {
	if damage := new(Damage); d.reader.Elsewhere == nil || !errors.As(err, &damage) {
		return err
	}
	d.salvage(pieces, encoded, plain, err)
	return nil
}

// unread reads the containers of a group one by one, after an error of the read of all of them. Those that cannot be read are left to Elsewhere.
func (d *decoder) unread(pieces []piece, room *scratch, err error) error {
	if d.reader.Elsewhere == nil || d.reader.Unreadable == nil || !d.reader.Unreadable(err) {
		return err
	}
	if pieces[0].container == pieces[len(pieces)-1].container {
		d.losses.add(pieces, err)
		return nil
	}
	return byContainer(pieces, func(some []piece) error { return d.group(some, room) })
}

// lookElsewhere finds the pieces of damaged containers.
func (d *decoder) lookElsewhere() error {
	l := &d.losses
	if len(l.pieces) == 0 {
		return nil
	}
	l.list(d.reader, d.slot)
	d.reader.Elsewhere(l)
	if l.Some() {
		return l.rest[0].err
	}
	l.spread(d.slot, d.arrived)
	return nil
}

// salvage copies what the sound chunks of a damaged container have, and adds the rest of its pieces to the losses.
func (d *decoder) salvage(pieces []piece, encoded, plain []byte, err error) {
	bytes := d.reader.places[pieces[0].object].plain(int(pieces[0].container))
	sound := soundChunks(pieces, encoded, plain[:bytes])
	arrivals := arrivals{tell: d.arrived}
	var lost []piece
	for i := range pieces {
		pieces[i].eachPart(func(part piece) {
			if sound.has(part.chunks()) {
				part.copyTo(d.slot, plain, arrivals.add)
			} else {
				lost = append(lost, part)
			}
		})
	}
	arrivals.flush()
	d.losses.add(lost, err)
}

// soundChunks decodes each chunk that the pieces need by itself, and returns those that are not damaged. Of a container with a reference it finds none.
func soundChunks(pieces []piece, encoded, plain []byte) (sound chunkSet) {
	c, err := codec.Open(encoded, len(plain))
	if err != nil || c.Together() > 1 || c.NeedsReference() {
		return sound
	}
	var needed chunkSet
	for i := range pieces {
		needed.add(pieces[i].chunks())
	}
	for i := range c.Chunks() {
		if needed.has(i, i+1) && c.DecodeChunks(ofChunks(plain, i, i+1), nil, i, i+1, 1) == nil {
			sound.add(i, i+1)
		}
	}
	return sound
}

// eachPart calls f for the parts of the piece in each chunk. A piece that is copied to several places is one part.
func (p *piece) eachPart(f func(part piece)) {
	if p.stride != 0 {
		f(*p)
		return
	}
	for rest := *p; rest.n > 0; {
		part := rest
		part.n = min(rest.n, codec.ChunkBytes-rest.from%codec.ChunkBytes)
		part.end = part.to + part.n
		rest.from, rest.to, rest.n = rest.from+part.n, rest.to+part.n, rest.n-part.n
		f(part)
	}
}
