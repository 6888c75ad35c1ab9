package regions

import (
	"fmt"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
)

// Source reads encoded bytes: those from an offset on, behind the beginning of the first container. Several goroutines may call it at once.
type Source func(at int64, to []byte) error

// inBytes is how many bytes of neighbouring containers are read at once, if one has not more.
const inBytes = 2 << 20

// Decode decodes what is wanted of the regions, which lie at these spans of a slot: ascending, disjoint spans of the slot. Bytes between regions are skipped,
// and other bytes of chunks that are wanted in part are decoded too. The encoding has passed its Check for the regions. arrived is told of every wanted byte
// once, when it is there, as spans of the slot; several goroutines may call it at once. Errors about a container are of type *Damage.
func Decode(spans []model.Span, encoding *model.Encoding, wanted []model.Span, from Source, slot []byte, arrived func(at, n int64), o Options) error {
	d := &decoder{from: from, slot: slot, arrived: arrived, parts: overlapping(spans, encoding, wanted), reference: o.Reference}
	if len(d.parts) == 0 {
		return nil
	}
	d.group()
	goroutines := max(1, min(o.Goroutines, len(d.groups)))
	need := make([]int64, 0, 3*goroutines)
	for range goroutines {
		need = append(need, d.largest)
		need = append(need, d.forReference()...)
	}
	rooms, err := o.Room.Cut(need...)
	if err != nil {
		return err
	}
	return EachGroup(goroutines, len(d.groups), func(goroutine, g int) error {
		first := 0
		if g > 0 {
			first = d.groups[g-1]
		}
		return d.decode(d.parts[first:d.groups[g]], rooms[goroutine*len(need)/goroutines:])
	})
}

// partial is a container of which bytes are wanted.
type partial struct {
	model.Container
	number int          // of the container
	wanted []model.Span // of the slot, inside of the container's plain bytes
}

// overlapping returns the containers of which something is wanted.
func overlapping(spans []model.Span, encoding *model.Encoding, wanted []model.Span) (parts []partial) {
	number := -1
	encoding.Each(spans, func(c model.Container) bool {
		number++
		for len(wanted) > 0 && wanted[0].End() <= c.Plain.Offset {
			wanted = wanted[1:]
		}
		p := partial{Container: c, number: number}
		for _, w := range wanted {
			if w.Offset >= c.Plain.End() {
				break
			}
			from, end := max(w.Offset, c.Plain.Offset), min(w.End(), c.Plain.End())
			if from < end {
				p.wanted = append(p.wanted, model.Span{Offset: from, Bytes: end - from})
			}
		}
		if p.wanted != nil {
			parts = append(parts, p)
		}
		return len(wanted) > 0
	})
	return parts
}

// decoder is a call of Decode. Each goroutine takes the next group of neighbouring containers, reads it, and decodes them.
type decoder struct {
	from    Source
	slot    []byte
	arrived func(at, n int64)
	parts   []partial
	groups  []int // index of the first part behind each group
	largest int64 // bytes of a group

	reference Reference
}

// forReference is how much memory a goroutine needs for the reference of a container, and to decode that; none without one.
func (d *decoder) forReference() []int64 {
	if d.reference == nil {
		return nil
	}
	most := int64(0)
	for i := range d.parts {
		most = max(most, d.parts[i].Plain.Bytes)
	}
	return []int64{most, int64(codec.Bound(int(most)))}
}

func (d *decoder) group() {
	first := 0
	for i := range d.parts {
		p, behind := &d.parts[i], i+1 == len(d.parts)
		begin := d.parts[first].At.Offset
		if n := p.At.End() - begin; behind || d.parts[i+1].At.Offset != p.At.End() || n+d.parts[i+1].At.Bytes > inBytes {
			d.groups, d.largest = append(d.groups, i+1), max(d.largest, n)
			first = i + 1
		}
	}
}

// decode has memory for the containers, and behind it, where there is a reference, for that.
func (d *decoder) decode(parts []partial, rooms [][]byte) error {
	begin, end := parts[0].At.Offset, parts[len(parts)-1].At.End()
	encoded := rooms[0][:end-begin]
	if err := d.from(begin, encoded); err != nil {
		return err
	}
	for i := range parts {
		p := &parts[i]
		if err := d.decodeOne(p, encoded[p.At.Offset-begin:p.At.End()-begin], rooms[1:]); err != nil {
			if codec.IsDamage(err) {
				err = &Damage{p.Region, fmt.Errorf("the container of bytes %d to %d: %w", p.Plain.Offset, p.Plain.End(), err)}
			}
			return err
		}
	}
	return nil
}

// decodeOne decodes the chunks of a container that hold what is wanted.
func (d *decoder) decodeOne(p *partial, container []byte, rooms [][]byte) error {
	c, err := codec.Open(container, int(p.Plain.Bytes))
	if err != nil {
		return err
	}
	var reference []byte
	if c.NeedsReference() && d.reference != nil {
		reference = rooms[0][:p.Plain.Bytes]
		if err := d.reference(p.number, reference, rooms[1]); err != nil {
			return err
		}
	}
	plain := d.slot[p.Plain.Offset:p.Plain.End()]
	done := 0 // chunks before it are decoded, or not wanted
	together := int64(c.Together()) * codec.ChunkBytes
	for _, w := range p.wanted {
		first := max(done, int((w.Offset-p.Plain.Offset)/together)*c.Together())
		done = min(int((w.End()-p.Plain.Offset+together-1)/together)*c.Together(), c.Chunks())
		if first < done {
			from, end := int64(first)*codec.ChunkBytes, min(int64(done)*codec.ChunkBytes, p.Plain.Bytes)
			if err := c.DecodeChunks(plain[from:end], part(reference, from, end), first, done, 1); err != nil {
				return err
			}
		}
		d.arrived(w.Offset, w.Bytes)
	}
	return nil
}

// part is a part of a reference; nil without one.
func part(reference []byte, from, end int64) []byte {
	if reference == nil {
		return nil
	}
	return reference[from:end]
}
