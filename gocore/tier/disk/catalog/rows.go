package catalog

// ref locates a row: the number of its chunk, from 1 on, and the offset in it. The highest bit is free.
type ref uint64

func refOf(chunk, offset int) ref { return ref(chunk+1)<<32 | ref(offset) }

func (r ref) chunk() int  { return int(r>>32) - 1 }
func (r ref) offset() int { return int(uint32(r)) }

// rows stores the items of rows in sequence, in chunks. A dropped item is marked, and removed by compact.
type rows struct {
	chunks [][]byte
	held   int64 // bytes of all items
	live   int64 // bytes of current items
}

// Sizes of chunks. They grow with the content, so that a few rows take little memory, and many rows take few chunks.
const (
	smallestChunk = 4 << 10
	largestChunk  = 1 << 20
)

// add stores a copy of an item.
func (r *rows) add(i item) ref {
	last := len(r.chunks) - 1
	if last < 0 || len(i) > cap(r.chunks[last])-len(r.chunks[last]) {
		size := min(max(r.held, smallestChunk), largestChunk)
		r.chunks = append(r.chunks, make([]byte, 0, max(int(size), len(i))))
		last++
	}
	at := refOf(last, len(r.chunks[last]))
	r.chunks[last] = append(r.chunks[last], i...)
	r.held += int64(len(i))
	r.live += int64(len(i))
	return at
}

func (r *rows) at(place ref) item {
	p := r.chunks[place.chunk()][place.offset():]
	return item(p[:itemHead+le32(p[4:])])
}

func (r *rows) serial(place ref) uint64 {
	return le64(r.chunks[place.chunk()][place.offset()+putSerial:])
}

// mark sets the kind of an item: current or dropped.
func (r *rows) mark(place ref, k kind) {
	i := r.at(place)
	if i.kind() == k {
		return
	}
	i[0] = byte(k)
	if k == kindGone {
		r.live -= int64(len(i))
	} else {
		r.live += int64(len(i))
	}
}

// end is the position of the next item; cut discards everything after it.
type end struct {
	chunks, bytes int
	held          int64
}

func (r *rows) end() end {
	e := end{chunks: len(r.chunks), held: r.held}
	if e.chunks > 0 {
		e.bytes = len(r.chunks[e.chunks-1])
	}
	return e
}

func (r *rows) cut(e end) {
	clear(r.chunks[e.chunks:])
	r.chunks = r.chunks[:e.chunks]
	if e.chunks > 0 {
		r.chunks[e.chunks-1] = r.chunks[e.chunks-1][:e.bytes]
	}
	r.held = e.held
}

// each calls f for the current items, in the order of insertion, until f returns false.
func (r *rows) each(f func(i item) bool) {
	for _, chunk := range r.chunks {
		for len(chunk) > 0 {
			n := itemHead + le32(chunk[4:])
			if kind(chunk[0]) != kindGone && !f(item(chunk[:n:n])) {
				return
			}
			chunk = chunk[n:]
		}
	}
}

// compact moves the current items together, in order, and calls moved for each item that has moved.
func (r *rows) compact(moved func(i item, to ref)) {
	if r.live == r.held {
		return
	}
	into, used := 0, 0
	for from, chunk := range r.chunks {
		for at := 0; at < len(chunk); {
			i := item(chunk[at : at+itemHead+int(le32(chunk[at+4:]))])
			was := refOf(from, at)
			at += len(i)
			if i.kind() == kindGone {
				continue
			}
			// The write position never overtakes the read position: at the latest, the chunk that is being read has room.
			for into < from && len(i) > cap(r.chunks[into])-used {
				r.chunks[into] = r.chunks[into][:used]
				into, used = into+1, 0
			}
			to := refOf(into, used)
			used += len(i)
			if to == was {
				continue
			}
			kept := r.chunks[into][:used]
			copy(kept[used-len(i):], i)
			moved(item(kept[used-len(i):]), to)
		}
	}
	if len(r.chunks) > 0 {
		r.chunks[into] = r.chunks[into][:used]
		if used > 0 {
			into++
		}
		clear(r.chunks[into:])
		r.chunks = r.chunks[:into]
	}
	r.held = r.live
}
