package object

import (
	"cmp"
	"errors"
	"slices"
	"sync"

	"velocpy/gocore/model"
)

// Losses are the bytes that a call of Decode needs of damaged or unreadable containers. Another checkpoint of the lineage whose map refers to the same first
// occurrences has them, too.
type Losses struct {
	mu      sync.Mutex
	pieces  []lostPiece
	objects []int  // that have lost something: indices in model.Difference.Sources, or Own
	rest    []lost // what was not found elsewhere, ascending by number and offset
}

// lostPiece is a piece of a container that cannot be decoded.
type lostPiece struct {
	piece
	err error
}

// lost is first occurrences that are still to be found.
type lost struct {
	number uint32 // of the object
	at     int64  // offset in its first occurrences
	to     []byte // their place in the slot
	err    error
}

// add adds pieces of a container.
func (l *Losses) add(pieces []piece, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range pieces {
		of := err
		if damage := new(Damage); errors.As(err, &damage) {
			of = &Damage{int(p.region), damage.Source, damage.Err}
		}
		l.pieces = append(l.pieces, lostPiece{p, of})
	}
}

// list makes the list of what is to be found. It does not depend on the order in which goroutines met the damage.
func (l *Losses) list(r *Reader, slot []byte) {
	slices.SortFunc(l.pieces, func(a, b lostPiece) int { return comparePieces(a.piece, b.piece) })
	for i, p := range l.pieces {
		if i == 0 || p.object != l.pieces[i-1].object {
			source, _, _ := r.object(int(p.object))
			l.objects = append(l.objects, source)
		}
		at := r.places[p.object].offset(int(p.container)) + p.from
		l.rest = append(l.rest, lost{r.numbers[p.object], at, slot[p.to:][:p.n], p.err})
	}
	slices.SortStableFunc(l.rest, func(a, b lost) int { return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.at, b.at)) })
}

// Objects are those that have lost something, each once: indices in model.Difference.Sources, or Own.
func (l *Losses) Objects() []int { return l.objects }

// Some tells whether bytes are still to be found.
func (l *Losses) Some() bool { return len(l.rest) > 0 }

// Needs tells whether bytes are still to be found that a checkpoint with this difference may have: it wrote their object, or refers to it.
func (l *Losses) Needs(d *model.Difference) bool {
	for i, x := range l.rest {
		if i > 0 && l.rest[i-1].number == x.number {
			continue
		}
		if x.number == d.Number || slices.ContainsFunc(d.Sources, func(s model.Source) bool { return s.Number == x.number }) {
			return true
		}
	}
	return false
}

// Fill takes what it finds from another checkpoint of the lineage: of has its map, and slot its plain bytes. good tells whether the bytes of a region of that
// checkpoint are right. It is asked once for each region that may have some of the lost bytes.
func (l *Losses) Fill(of *Reader, slot []byte, good func(region int) bool) {
	all := of.extents(l.rest, good)
	var rest []lost
	for _, x := range l.rest {
		rest = x.take(all[x.number], slot, rest)
	}
	l.rest = rest
}

// take copies what the extents of its object have, and adds what is left to a list.
func (x lost) take(all []extent, slot []byte, left []lost) []lost {
	i, _ := slices.BinarySearchFunc(all, x.at, func(s extent, at int64) int { return cmp.Compare(s.end, at+1) })
	for ; i < len(all) && len(x.to) > 0; i++ {
		s := all[i]
		if gap := min(s.from-x.at, int64(len(x.to))); gap > 0 {
			left = append(left, lost{x.number, x.at, x.to[:gap], x.err})
			x = x.behind(gap)
		}
		if n := min(s.end-x.at, int64(len(x.to))); n > 0 {
			copy(x.to[:n], slot[s.at+x.at-s.from:])
			x = x.behind(n)
		}
	}
	if len(x.to) > 0 {
		left = append(left, x)
	}
	return left
}

// behind is what follows the first bytes.
func (x lost) behind(bytes int64) lost {
	x.at, x.to = x.at+bytes, x.to[bytes:]
	return x
}

// spread copies each piece, whose first place has its bytes by now, to its other places, and tells of all.
func (l *Losses) spread(slot []byte, arrived func(at, n int64)) {
	for _, p := range l.pieces {
		source := slot[p.to:][:p.n]
		p.from = 0
		p.copyTo(slot, source, arrived)
	}
}
