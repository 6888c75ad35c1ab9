package object

import (
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/regions"
)

// inBytes is how many bytes of neighbouring containers are read at once, if one has not more.
const inBytes = 2 << 20

// Decode decodes what is wanted of the regions: ascending, disjoint spans of the slot, each in a region. arrived is told of every wanted byte once, when it is
// there, as spans of the slot; several goroutines may call it at once. Each container that has a wanted byte is read and opened once, and its chunks are decoded
// that have one. Calls at once need a Room each. Errors about containers that have bytes which Elsewhere does not find are of type *Damage; those of the caller's
// read are returned as they are. After an error the wanted bytes have no meaning.
func (r *Reader) Decode(wanted []model.Span, slot []byte, arrived func(at, n int64), o regions.Options) error {
	pieces, err := r.plan(wanted)
	if err != nil {
		return err
	}
	if len(pieces) == 0 {
		return nil
	}
	d := &decoder{reader: r, slot: slot, arrived: arrived, pieces: pieces}
	d.divide()
	goroutines := max(1, min(o.Goroutines, len(d.groups)))
	var need []int64
	before, encodedBefore := int64(0), int64(0)
	if r.reference >= 0 {
		before, encodedBefore = r.places[r.reference].plainMost, r.places[r.reference].encodedMost
	}
	for range goroutines {
		need = append(need, d.largest, d.plainMost, before, encodedBefore)
	}
	rooms, err := o.Room.Cut(need...)
	if err != nil {
		return err
	}
	err = regions.EachGroup(goroutines, len(d.groups), func(goroutine, g int) error {
		end := len(d.pieces)
		if g+1 < len(d.groups) {
			end = d.groups[g+1]
		}
		own := rooms[4*goroutine:]
		return d.group(d.pieces[d.groups[g]:end], &scratch{own[0], own[1], own[2], own[3]})
	})
	if err != nil {
		return err
	}
	return d.lookElsewhere()
}

// scratch is memory of one goroutine: for encoded bytes of a group, the plain bytes of a container, and the same of its reference.
type scratch struct{ encoded, plain, before, encodedBefore []byte }

// decoder is a call of Decode. Each goroutine takes the next group of neighbouring containers, reads it, and decodes them.
type decoder struct {
	reader    *Reader
	slot      []byte
	arrived   func(at, n int64)
	pieces    []piece
	groups    []int // index of the first piece of each group
	largest   int64 // encoded bytes of a group
	plainMost int64 // bounds the plain bytes of a container
	losses    Losses
}

// divide makes the groups: neighbouring containers of an object.
func (d *decoder) divide() {
	var last *piece
	begin := int64(0) // of the group in its object
	for i := range d.pieces {
		p := &d.pieces[i]
		in := d.reader.places[p.object]
		at, end := in.at, in.at[p.container+1]
		near := last != nil && last.object == p.object && p.container-last.container <= 1
		if !near || last.container != p.container && end-begin > inBytes {
			d.groups, begin = append(d.groups, i), at[p.container]
			d.plainMost = max(d.plainMost, in.plainMost)
		}
		d.largest = max(d.largest, end-begin)
		last = p
	}
}

// group reads the containers of a group at once and decodes them.
func (d *decoder) group(pieces []piece, room *scratch) error {
	object := int(pieces[0].object)
	at := d.reader.places[object].at
	begin, end := at[pieces[0].container], at[pieces[len(pieces)-1].container+1]
	encoded := room.encoded[:end-begin]
	source, _, _ := d.reader.object(object)
	if err := d.reader.read(source, begin, encoded); err != nil {
		return d.unread(pieces, room, err)
	}
	return byContainer(pieces, func(some []piece) error {
		c := some[0].container
		here := encoded[at[c]-begin : at[c+1]-begin]
		err := d.container(some, here, room)
		if err == nil {
			return nil
		}
		return d.lose(some, here, room.plain, damaged(err, int(some[0].region), source))
	})
}

// byContainer calls f for the pieces of each container, until it fails.
func byContainer(pieces []piece, f func(some []piece) error) error {
	for len(pieces) > 0 {
		behind := 1
		for behind < len(pieces) && pieces[behind].container == pieces[0].container {
			behind++
		}
		if err := f(pieces[:behind]); err != nil {
			return err
		}
		pieces = pieces[behind:]
	}
	return nil
}

// container decodes the chunks of a container that its pieces need, and copies these to their places.
func (d *decoder) container(pieces []piece, encoded []byte, room *scratch) error {
	container := int(pieces[0].container)
	bytes := d.reader.places[pieces[0].object].plain(container)
	c, err := codec.Open(encoded, int(bytes))
	if err != nil {
		return err
	}
	var needed, done chunkSet
	for i := range pieces {
		needed.add(pieces[i].chunks())
	}
	needed.complete(c)
	before, err := d.reader.before(c, int(pieces[0].object), container, &needed, room.before, room.encodedBefore)
	if err != nil {
		return err
	}
	if p := &pieces[0]; len(pieces) == 1 && p.stride == 0 && p.from%codec.ChunkBytes == 0 && (p.n%codec.ChunkBytes == 0 || p.from+p.n == bytes) {
		first, behind := p.chunks()
		if err := c.DecodeChunks(d.slot[p.to:p.end], ofChunks(before, first, behind), first, behind, 1); err != nil {
			return err
		}
		d.arrived(p.to, p.n)
		return nil
	}
	if err := needed.decode(c, room.plain[:bytes], before, &done); err != nil {
		return err
	}
	arrivals := arrivals{tell: d.arrived}
	for i := range pieces {
		pieces[i].copyTo(d.slot, room.plain, arrivals.add)
	}
	arrivals.flush()
	return nil
}

// chunks are the chunks of the container that have the piece: the first one, and the one behind the last.
func (p *piece) chunks() (first, behind int) {
	return int(p.from / codec.ChunkBytes), int((p.from + p.n + codec.ChunkBytes - 1) / codec.ChunkBytes)
}

// arrivals joins neighbours before it tells of them.
type arrivals struct {
	tell  func(at, n int64)
	at, n int64
}

func (a *arrivals) add(at, n int64) {
	if a.at+a.n == at {
		a.n += n
		return
	}
	a.flush()
	a.at, a.n = at, n
}

func (a *arrivals) flush() {
	if a.n > 0 {
		a.tell(a.at, a.n)
	}
	a.n = 0
}
