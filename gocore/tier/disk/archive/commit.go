package archive

import (
	"encoding/binary"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/description"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
)

// ranksRegion is the region of a complete key that has the numbers of its ranks.
const ranksRegion = "ranks"

// listLayout is the layout of the checkpoint that lists so many ranks.
func listLayout(count int) *catalog.Layout {
	return &catalog.Layout{Layout: description.Int64s(ranksRegion, count)}
}

// numbersOf are the bytes of that checkpoint.
func numbersOf(ranks []int) (bytes []byte) {
	for _, n := range ranks {
		bytes = binary.LittleEndian.AppendUint64(bytes, uint64(n))
	}
	return bytes
}

// commit commits keys, each with all that belongs to it in one batch of the catalog.
func (p *Push) commit(batch []*task) error {
	if len(batch) == 0 {
		return nil
	}
	lists, err := p.writeLists(batch)
	if err != nil {
		return err
	}
	p.guard.Lock()
	changes := p.changes(batch, lists)
	p.guard.Unlock()
	if err := p.await(changes); err != nil {
		return err
	}
	p.noteKeys(batch)
	return nil
}

// changes returns the changes of a batch, those of each key together. lists are the changes that commit the lists of its keys.
func (p *Push) changes(batch []*task, lists []*durable.Change) (changes []*durable.Change) {
	serial := p.there.State().MaxSerial()
	counted := map[int64]bool{} // offsets of rooms
	for i, t := range batch {
		var of []*durable.Change
		for _, x := range t.parts {
			if x.known {
				continue
			}
			serial++
			put := x.row
			put.Serial = serial
			of = append(of, &durable.Change{History: PartName(x.of.number, t.history), Put: &put, Off: x.off})
			p.owned[x.off] = true
			for _, m := range x.news {
				if !counted[m.at] {
					counted[m.at] = true
					p.done.Bytes += m.room.End - m.room.From
				}
			}
		}
		p.done.Parts += len(of)
		serial++
		lists[i].Put.Serial = serial
		of = append(of, lists[i])
		for _, n := range t.stale {
			of = append(of, &durable.Change{History: PartName(n, t.history), Key: t.key, Serial: serial, Drop: true})
		}
		for _, c := range of[1:] {
			c.Together = true
		}
		changes = append(changes, of...)
	}
	return changes
}

// noteKeys notes that the archive has keys.
func (p *Push) noteKeys(batch []*task) {
	for _, t := range batch {
		for _, x := range t.parts {
			p.addPart(t.history, x.of.number)
		}
	}
	p.done.Keys += len(batch)
}

// writeLists writes the lists of ranks of keys into the first file, and returns the changes that commit them.
func (p *Push) writeLists(batch []*task) (all []*durable.Change, err error) {
	all, sizes, bytes := listsOf(batch)
	begins, err := p.take(0, sizes, nil)
	if err != nil {
		return nil, err
	}
	layLists(all, begins[0])
	return all, p.to.Space().Write(all[0].Off, bytes)
}

// layLists says where the lists of keys lie, one behind the other.
func layLists(all []*durable.Change, at int64) {
	for _, c := range all {
		c.Off = at
		at += c.Put.Bytes()
	}
}

// listsOf returns the changes that commit the lists of ranks of keys, and the bytes of these.
func listsOf(batch []*task) (all []*durable.Change, sizes []int64, bytes []byte) {
	sizes = make([]int64, len(batch))
	for i, t := range batch {
		row := &catalog.Row{Key: t.key, Align: 64, Layout: listLayout(len(t.parts))}
		numbers := make([]int, len(t.parts))
		for k, x := range t.parts {
			numbers[k], row.Time = x.of.number, max(row.Time, x.row.Time)
		}
		list := numbersOf(numbers)
		row.Sums = []uint64{checksum.Sum(list)}
		sizes[i] = row.Bytes()
		bytes = append(append(bytes, list...), make([]byte, int(sizes[i])-len(list))...)
		all = append(all, &durable.Change{History: t.history, Put: row})
	}
	return all, sizes, bytes
}
