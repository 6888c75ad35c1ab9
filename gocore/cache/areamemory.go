package cache

import (
	"slices"

	"velocpy/gocore/model"
)

// The turn of an area guards its memory, but for the end of what was lent.

// take takes memory; false: there is not so much in one piece.
func (ar *LineageArea) take(bytes int64) (model.Span, bool) {
	bytes = roundUp(max(bytes, 1), areaAlign)
	at := ar.at
	for i := 0; i <= len(ar.taken); i++ {
		end := ar.at + ar.bytes
		if i < len(ar.taken) {
			end = ar.taken[i].Offset
		}
		if end-at >= bytes {
			s := model.Span{Offset: at, Bytes: bytes}
			ar.taken = slices.Insert(ar.taken, i, s)
			return s, true
		}
		if i < len(ar.taken) {
			at = ar.taken[i].End()
		}
	}
	return model.Span{}, false
}

// takeLast is take from the end of the area: what is soon given back does not cut the memory of digests into pieces.
func (ar *LineageArea) takeLast(bytes int64) (model.Span, bool) {
	bytes = roundUp(max(bytes, 1), areaAlign)
	end := ar.at + ar.bytes
	for i := len(ar.taken); i >= 0; i-- {
		at := ar.at
		if i > 0 {
			at = ar.taken[i-1].End()
		}
		if end-at >= bytes {
			s := model.Span{Offset: end - bytes, Bytes: bytes}
			ar.taken = slices.Insert(ar.taken, i, s)
			return s, true
		}
		if i > 0 {
			end = ar.taken[i-1].Offset
		}
	}
	return model.Span{}, false
}

// give gives memory back that take gave.
func (ar *LineageArea) give(s model.Span) {
	if s.Bytes > 0 {
		ar.taken = slices.DeleteFunc(ar.taken, func(x model.Span) bool { return x.Offset == s.Offset })
	}
}

// free is how many bytes are not taken.
func (ar *LineageArea) free() int64 {
	n := ar.bytes
	for _, s := range ar.taken {
		n -= s.Bytes
	}
	return n
}

// Lent is memory of an area that work of the device uses while other checkpoints have their turns.
type Lent struct {
	span  model.Span
	ended chan struct{}
	lost  bool
}

// End tells that the work has ended, or, if it is lost, that it may go on: then the memory is never used again. It is called once, by any goroutine.
func (x *Lent) End(lost bool) {
	x.lost = lost
	close(x.ended)
}

func (ar *LineageArea) lend(s model.Span) *Lent {
	x := &Lent{span: s, ended: make(chan struct{})}
	ar.lent = append(ar.lent, x)
	return x
}

// takeBack gives back what was lent to work that has ended.
func (ar *LineageArea) takeBack() {
	ar.lent = slices.DeleteFunc(ar.lent, func(x *Lent) bool {
		select {
		case <-x.ended:
		default:
			return false
		}
		if !x.lost {
			ar.give(x.span)
		}
		return true
	})
}

// awaitLent waits for the work that uses memory for the longest time; false: none does.
func (ar *LineageArea) awaitLent() bool {
	if len(ar.lent) == 0 {
		return false
	}
	<-ar.lent[0].ended
	ar.takeBack()
	return true
}
