package archive

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"velocpy/gocore/base/fanout"
	"velocpy/gocore/base/memory"
	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/disk/segment"
)

// copyBytes is the length of one read and one write.
const copyBytes = aggregation.CopyBytes

// bufferPurpose is the name under which package memory accounts the buffers.
const bufferPurpose = "archive buffers"

var noObject = durable.LineageObject{}

// lay notes where a room of a rank's store lies in the archive.
func (p *Push) lay(rank int, m *move, at int64) {
	m.at = at
	if m.room.Object != noObject {
		p.rooms[object{rank, m.room.Object}] = at
	}
}

// refer sets where the own rooms of the parts that a batch brings, and their sources, lie in the archive. All of its rooms have their places.
func (p *Push) refer(batch []*task) {
	for _, t := range batch {
		for _, x := range t.parts {
			if !x.known {
				x.refer(p.rooms)
			}
		}
	}
}

func (x *part) refer(rooms map[object]int64) {
	at := func(r durable.Room) int64 {
		if r.Object != noObject {
			return rooms[object{x.of.number, r.Object}]
		}
		return x.news[0].at // the row has one room, which no other row shares
	}
	x.off = at(x.rooms[0])
	if d := x.row.Difference; d != nil {
		of := *d
		of.Sources = slices.Clone(of.Sources)
		for i, r := range x.rooms[1:] {
			of.Sources[i].Offset = at(r)
		}
		x.row.Difference = &of
	}
}

// piece is what one writer copies, at most copyBytes at once.
type piece struct {
	of   *part
	file int64
	from int64
	end  int64
	at   int64
}

// pieces cuts what a batch brings. Writers take the pieces in this order: the files by turns, and each from its beginning to its end. longest bounds a piece of what no
// writer has to copy from its beginning to its end.
func pieces(batch []*task, longest int64) []piece {
	files := map[int64][]piece{}
	for _, t := range batch {
		for _, x := range t.parts {
			if x.known || x.row.Stored() == 0 {
				continue // of no bytes there is a room, in which nothing was ever written
			}
			length := longest
			if x.row.Stored() <= aggregation.LongestStream {
				if x.seen = durable.NewStream(&x.row); x.seen != nil {
					length = max(longest, aggregation.LongestStream)
				}
			}
			for _, m := range x.news {
				file := m.at / segmentBytes
				for from := m.room.From; from < m.room.End; from += length {
					end := min(from+length, m.room.End)
					files[file] = append(files[file], piece{x, file, from, end, m.at + from - m.room.From})
				}
			}
		}
	}
	inOrder := make([][]piece, 0, len(files))
	for _, file := range slices.Sorted(maps.Keys(files)) {
		slices.SortFunc(files[file], func(a, b piece) int { return cmp.Compare(a.at, b.at) })
		inOrder = append(inOrder, files[file])
	}
	return aggregation.ByTurns(inOrder)
}

// writers is how many goroutines copy.
func (o *Options) writers() int { return cmp.Or(o.Writers, DefaultWriters) }

// workers shares numbers among as many goroutines as there are writers.
func (o *Options) workers(count int, f func(mine iter.Seq[int]) error) error {
	return workers(o.writers(), count, f)
}

func workers(most, count int, f func(mine iter.Seq[int]) error) error {
	return fanout.Do("archive writer", most, count, f)
}

// copyAll copies the rooms of a batch. What cannot be read of a store is damage of the part, or its error.
func (p *Push) copyAll(batch []*task) error {
	for _, t := range batch {
		for _, x := range t.parts {
			for _, m := range x.news {
				x.of.from.Space().Grow(m.room.End)
			}
		}
	}
	all := pieces(batch, copyBytes)
	var guard sync.Mutex // of the parts' errors
	return p.o.workers(len(all), func(mine iter.Seq[int]) (err error) {
		buffer, err := memory.Map(bufferPurpose, copyBytes)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, buffer.Unmap()) }()
		for i := range mine {
			c := &all[i]
			var seen func(p []byte)
			if c.of.seen != nil {
				seen = c.of.seen.Take
			}
			err := durable.CopyRange(c.of.of.from.Space(), c.from, c.end, p.to.Space(), c.at, buffer.Bytes(0, copyBytes), seen)
			if bad := (durable.SourceError{}); errors.As(err, &bad) {
				guard.Lock()
				c.of.unread(bad.Err)
				guard.Unlock()
			} else if err != nil {
				return fmt.Errorf("%s: %w", segment.FileName(uint64(c.file)+1), err)
			}
		}
		return nil
	})
}
