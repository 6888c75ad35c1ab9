package object

import (
	"cmp"
	"slices"

	"velocpy/gocore/reduction/difference"
)

// thin forgets the objects that have the fewest bytes of the last checkpoint, when they are nearly as many as a checkpoint may have sources. The next
// checkpoint stores these bytes anew, so that it need not become a base, which stores all bytes. Half of the objects stay: then as many checkpoints can follow
// before bytes are stored anew again.
func (w *Writer) thin() {
	last := w.lineage.Last()
	if last == nil {
		return
	}
	named := last.Named()
	if len(named) <= w.options.MaxSources-w.options.MaxSources/8 { // the record may name some more
		return
	}
	shares := shares(last, named)
	slices.SortFunc(shares, func(a, b share) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.number, b.number)) })
	var gone []uint32
	for _, s := range shares[:len(shares)-(w.options.MaxSources+1)/2] {
		gone = append(gone, s.number)
	}
	w.Forget(gone...)
}

// share is how many bytes of a checkpoint an object has; bytes of a source that repeats count once.
type share struct {
	number uint32
	bytes  uint64
}

// shares returns the shares of the objects that a map names.
func shares(m *difference.Map, named []uint32) (list []share) {
	bytes := map[uint32]uint64{}
	for i := range m.Regions {
		l := &m.Regions[i]
		l.Each(0, l.Size, func(r difference.Run, n uint64) bool {
			if r.Period > 0 {
				n = uint64(r.Period)
			}
			bytes[r.Checkpoint] += n
			return true
		})
	}
	for _, number := range named {
		list = append(list, share{number, bytes[number]})
	}
	return list
}
