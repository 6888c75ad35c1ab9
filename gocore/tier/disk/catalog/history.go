package catalog

import (
	"encoding/binary"
	"math"
	"math/bits"

	"velocpy/gocore/model"
)

// history is a history in the State.
type history struct {
	id        uint32
	name      string
	numbers   numbers
	texts     map[string]ref // nil until the first text key
	bytes     total
	retention *model.Retention
	pins      int // pending records that rely on it
}

func (h *history) rows() int { return h.numbers.taken() + len(h.texts) }

// find returns the row of a key, or 0.
func (h *history) find(k rawKey) ref {
	if k.isText {
		return h.texts[string(k.text)]
	}
	return h.numbers.find(k.number)
}

func (h *history) set(k rawKey, at ref) {
	switch {
	case !k.isText:
		h.numbers.set(k.number, at)
	case h.texts == nil:
		h.texts = map[string]ref{string(k.text): at}
	default:
		h.texts[string(k.text)] = at
	}
}

func (h *history) remove(k rawKey) {
	if k.isText {
		delete(h.texts, string(k.text))
	} else {
		h.numbers.remove(k.number)
	}
}

// each calls f for all rows, until f returns false.
func (h *history) each(f func(k model.Key, at ref) bool) {
	goes := true
	h.numbers.each(func(n int64, at ref) bool {
		goes = f(model.NumberKey(n), at)
		return goes
	})
	if !goes {
		return
	}
	for s, at := range h.texts {
		if !f(model.TextKey(s), at) {
			return
		}
	}
}

// total is a sum of 128 bits: items may claim sizes whose sum exceeds 64 bits.
type total struct{ high, low uint64 }

func (t *total) add(n uint64) {
	var carry uint64
	t.low, carry = bits.Add64(t.low, n, 0)
	t.high += carry
}

func (t *total) subtract(n uint64) {
	var borrow uint64
	t.low, borrow = bits.Sub64(t.low, n, 0)
	t.high -= borrow
}

// number is the sum, capped at the largest int64.
func (t total) number() int64 {
	if t.high > 0 || t.low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(t.low)
}

// parseHistory decodes a history's body.
func parseHistory(body []byte) (id uint32, name []byte, err error) {
	f := fields{p: body}
	id = f.u32()
	switch {
	case f.short:
		return 0, nil, malformed("the body is too short")
	case len(f.p) > MostName:
		return 0, nil, malformed("the name has %d bytes", len(f.p))
	}
	return id, f.p, nil
}

func appendHistory(to []byte, id uint32, name string) []byte {
	to, start := beginItem(to, kindHistory)
	to = binary.LittleEndian.AppendUint32(to, id)
	return endItem(append(to, name...), start)
}
