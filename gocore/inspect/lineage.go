package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
)

// mostBins bounds the bins of a region, so that its line fits a page.
const mostBins = 4096

// written identifies an object of a lineage.
type written struct {
	history uint32
	lineage uint64
	number  uint32
}

// origin is an object that a checkpoint consists of.
type origin struct {
	number int64      // in the lineage; -1: the checkpoint is no difference, and the object has all of it
	key    *model.Key // of the checkpoint whose own object it is; nil: that was dropped or replaced
	stored int64      // bytes in the data files
	bytes  uint64     // of the checkpoint's regions that lie in it
}

// located is a checkpoint with the places of its bytes.
type located struct {
	row     catalog.Row
	origins []origin        // ascending by number; the checkpoint's own object is the last one
	places  *difference.Map // nil: all bytes lie in its own object
}

// lineage answers which objects a checkpoint consists of, or which of them have the bytes of each region.
func (s *Session) lineage(q *Request, room int) ([]byte, error) {
	if q.What == "regions" && (q.Bins < 1 || q.Bins > mostBins) {
		return nil, fmt.Errorf("%w: %d bins, not 1 to %d", ErrRequest, q.Bins, mostBins)
	}
	row, err := s.find(q)
	if err != nil {
		return nil, err
	}
	if l := s.located; l == nil || l.row.History != row.History || l.row.Key != row.Key || l.row.Serial != row.Serial {
		s.located = nil // the map of the last checkpoint may be long
		if s.located, err = s.locate(row, string(q.History)); err != nil {
			return nil, err
		}
	}
	l := s.located
	switch q.What {
	case "objects":
		return lines(l.origins, q.From, room, appendOrigin)
	case "regions":
		regions := make([]int, len(row.Layout.Spans))
		for i := range regions {
			regions[i] = i
		}
		return lines(regions, q.From, room, func(to []byte, i int) []byte { return l.appendRegion(to, i, q.Bins) })
	}
	return nil, fmt.Errorf("%w: what is %q", ErrRequest, q.What)
}

// locate finds the origins of a checkpoint. It reads no bytes of a checkpoint that is no difference, and of a difference the metadata of its objects.
func (s *Session) locate(row catalog.Row, history string) (*located, error) {
	if !row.Readable() {
		return nil, status.New(status.Later, "checkpoint %s of history %.80q is stored as later versions of velocpy do", row.Key, history)
	}
	l := &located{row: row}
	d := row.Difference
	if d == nil {
		l.origins = []origin{{number: -1, key: &row.Key, stored: row.Bytes(), bytes: uint64(payload(row.Layout))}}
		return l, nil
	}
	m, err := s.places(&row, history)
	if err != nil {
		return nil, err
	}
	l.places = m
	owners := s.eachOwner()
	for i := range d.Sources {
		o := origin{number: int64(d.Sources[i].Number), stored: bytesOf(row.Sources[i])}
		if key, ok := owners[written{row.History, d.Lineage, d.Sources[i].Number}]; ok {
			o.key = &key
		}
		l.origins = append(l.origins, o)
	}
	l.origins = append(l.origins, origin{number: int64(d.Number), key: &row.Key, stored: row.Bytes()})
	for i := range m.Regions {
		for _, share := range m.Regions[i].Shares(0, m.Regions[i].Size) {
			l.origins[l.index(share.Checkpoint)].bytes += share.Bytes
		}
	}
	return l, nil
}

// places reads where the bytes of a difference lie.
func (s *Session) places(row *catalog.Row, history string) (*difference.Map, error) {
	if err := s.view.Described(row.Layout); err != nil {
		return nil, status.Wrap(status.Damaged, err, "checkpoint %s of history %.80q has a description that is none", row.Key, history)
	}
	if s.locator == nil {
		locator, err := s.view.Locator()
		if err != nil {
			return nil, err
		}
		s.locator = locator
	}
	m, err := s.locator.Locate(row)
	if err == nil {
		return m, nil
	}
	current, failed := s.view.Current(history, row.Key, row.Serial)
	switch {
	case failed != nil:
		return nil, failed
	case !current:
		return nil, fmt.Errorf("%w: checkpoint %s of history %.80q any more", ErrNone, row.Key, history)
	case errors.Is(err, durable.ErrUnreadable):
		return nil, status.Wrap(status.IO, err, "checkpoint %s of history %.80q", row.Key, history).AtTier(status.TierDisk)
	}
	return nil, status.Wrap(status.Damaged, err, "checkpoint %s of history %.80q", row.Key, history)
}

// eachOwner returns the keys of the checkpoints of all differences, by their own objects.
func (s *Session) eachOwner() map[written]model.Key {
	if s.owners == nil {
		s.owners = map[written]model.Key{}
		s.view.State().EachDifference(func(row catalog.Row) bool {
			s.owners[written{row.History, row.Difference.Lineage, row.Difference.Number}] = row.Key
			return true
		})
	}
	return s.owners
}

// index returns the place of an object among the origins. A map names no others.
func (l *located) index(number uint32) int {
	i, _ := slices.BinarySearchFunc(l.origins, int64(number), func(o origin, n int64) int { return cmp.Compare(o.number, n) })
	return i
}

// region returns the places of the bytes of a region.
func (l *located) region(i int) (*difference.Located, func(number uint32) int) {
	if l.places != nil {
		return &l.places.Regions[i], l.index
	}
	size := uint64(l.row.Layout.Spans[i].Bytes)
	whole := &difference.Located{Size: size}
	if size > 0 {
		whole.Runs = []difference.Run{{}}
	}
	return whole, func(uint32) int { return 0 }
}

func appendOrigin(to []byte, o origin) []byte {
	to = append(to, `{"number": `...)
	if o.number < 0 {
		to = append(to, "null"...)
	} else {
		to = strconv.AppendInt(to, o.number, 10)
	}
	to = append(to, `, "key": `...)
	if o.key == nil {
		to = append(to, "null"...)
	} else {
		to = appendKey(to, *o.key)
	}
	to = appendField(to, "stored_bytes", o.stored)
	return append(appendField(to, "bytes", o.bytes), '}')
}

// appendRegion appends the length of a region, how many bytes of it each object has, and for each bin which object has most of it and how many bytes of it the
// checkpoint's own object has. Objects are given by their places among the origins.
func (l *located) appendRegion(to []byte, i, bins int) []byte {
	region, index := l.region(i)
	to = strconv.AppendUint(append(to, `{"bytes": `...), region.Size, 10)
	to = append(to, `, "shares": [`...)
	for k, share := range region.Shares(0, region.Size) {
		if k > 0 {
			to = append(to, ", "...)
		}
		to = strconv.AppendInt(append(to, '['), int64(index(share.Checkpoint)), 10)
		to = strconv.AppendUint(append(to, ", "...), share.Bytes, 10)
		to = append(to, ']')
	}
	to = append(to, `], "bins": [`...)
	var own []uint64
	region.EachBin(bins, func(shares []difference.Share) {
		if len(own) > 0 {
			to = append(to, ", "...)
		}
		to = strconv.AppendInt(to, int64(index(difference.Most(shares).Checkpoint)), 10)
		last, bytes := shares[len(shares)-1], uint64(0)
		if index(last.Checkpoint) == len(l.origins)-1 {
			bytes = last.Bytes
		}
		own = append(own, bytes)
	})
	to = append(to, `], "own": [`...)
	for k, bytes := range own {
		if k > 0 {
			to = append(to, ", "...)
		}
		to = strconv.AppendUint(to, bytes, 10)
	}
	return append(to, "]}"...)
}
