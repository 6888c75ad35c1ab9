package object

import (
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/regions"
)

// Window is memory through which the bytes of a checkpoint pass when a Writer resumes.
type Window struct {
	Slot  []byte // room for the checkpoint's slot, of which few pages are in memory
	Bytes int64  // most bytes of it that are in use at once; not less than LeastWindow
	// Free is told of bytes that are not used any more.
	Free func(at, n int64) error
}

// LeastWindow is the least of Window.Bytes.
const LeastWindow = dedup.SegmentBytes

// Resume makes the checkpoint of a reader the one before the next of a new Writer of the same lineage: for a store that was opened again. The next checkpoint gets the
// next number, or that of Options.First if it is larger. It may refer to the objects that the checkpoint's map names. The digests of earlier checkpoints are not
// known: bytes that were not at the same place in this one are stored anew. All bytes are decoded and hashed once. After an error the writer is as new.
func (w *Writer) Resume(r *Reader, through Window, o regions.Options) error {
	m := r.Map()
	l := &loader{reader: r, through: through, options: o}
	if err := w.lineage.ResumeBy(m, l.load); err != nil {
		return err
	}
	w.next, w.broken = max(w.next, m.Checkpoint+1), true // the next one needs no metadata of others
	for i, h := range r.heads {
		w.stored[r.numbers[i]] = h.stored()
	}
	return nil
}

// loader decodes the regions of a checkpoint from the first to the last, as many bytes at once as the window takes.
type loader struct {
	reader     *Reader
	through    Window
	options    regions.Options
	begin, end int64 // what is decoded, in the slot
}

// load is a dedup.Load.
func (l *loader) load(region, at int) ([]byte, error) {
	span := l.reader.spans[region]
	from := span.Offset + int64(at)
	if from >= l.end {
		if err := l.through.Free(l.begin, l.end-l.begin); err != nil {
			return nil, err
		}
		wanted := l.next(region, int64(at))
		l.begin, l.end = from, wanted[len(wanted)-1].End()
		if err := l.reader.Decode(wanted, l.through.Slot, func(int64, int64) {}, l.options); err != nil {
			return nil, err
		}
	}
	return l.through.Slot[from:min(span.End(), l.end)], nil
}

// next returns what is decoded at once, from a byte of a region on. Only whole segments of the last region are part of it, unless they are all.
func (l *loader) next(region int, at int64) (wanted []model.Span) {
	left := l.through.Bytes
	for ; region < len(l.reader.spans); region, at = region+1, 0 {
		s := l.reader.spans[region]
		n := s.Bytes - at
		if n > left {
			n = left / dedup.SegmentBytes * dedup.SegmentBytes
		}
		if n > 0 {
			wanted = append(wanted, model.Span{Offset: s.Offset + at, Bytes: n})
		}
		if left -= n; at+n < s.Bytes {
			break
		}
	}
	return wanted
}
