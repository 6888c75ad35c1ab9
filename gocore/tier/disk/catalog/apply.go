package catalog

import (
	"encoding/binary"
	"fmt"
	"slices"

	"velocpy/gocore/model"
)

// Apply applies a record to the State: all of it, or nothing if it is malformed or of a later version. The State keeps only copies. Apply takes memory in
// proportion to the record and, until it returns, 8 bytes for each dropped row.
func (s *State) Apply(record []byte) error {
	s.undo.begin(s)
	err := s.try(record)
	if err != nil {
		s.undo.back(s)
		return err
	}
	s.undo.forget()
	return nil
}

// try applies the items of a record up to the first invalid one. undo records its changes.
func (s *State) try(record []byte) error {
	n, p := 0, record
	for len(p) > 0 {
		at := len(record) - len(p)
		i, rest, err := nextItem(p)
		if err == nil {
			err = s.apply(i)
		}
		if err != nil {
			return fmt.Errorf("item %d, at byte %d: %w", n, at, err)
		}
		n, p = n+1, rest
	}
	return nil
}

// Preview calls f for the rows that a record puts and does not drop again, and leaves the State unchanged. f must not change the State.
func (s *State) Preview(record []byte, f func(Row)) error {
	s.undo.begin(s)
	err := s.try(record)
	if err == nil {
		for _, at := range s.undo.rows {
			if i := s.rows.at(at &^ cameBit); at&cameBit != 0 && i.kind() == kindPut {
				f(s.decode(i))
			}
		}
	}
	s.undo.back(s)
	return err
}

// Define applies only the definitions of histories and layouts in a record, except contradictory ones. If a part of a log is damaged, the caller passes all
// records to Define before it passes any to Apply, as the remaining definition that a row relies on may come later.
func (s *State) Define(record []byte) {
	s.undo.begin(s)
	for p := record; len(p) > 0; {
		i, rest, err := nextItem(p)
		if err != nil {
			break
		}
		switch i.kind() {
		case kindHistory:
			_ = s.defineHistory(i, &s.undo) // Apply reports the error
		case kindLayout:
			_ = s.defineLayout(i, &s.undo)
		}
		p = rest
	}
	s.undo.forget()
}

func (s *State) apply(i item) error {
	switch k := i.kind(); {
	case k == kindPut:
		return s.put(i)
	case k == kindHistory:
		return s.defineHistory(i, &s.undo)
	case k == kindLayout:
		return s.defineLayout(i, &s.undo)
	case k == kindDrop:
		return s.drop(i)
	case k == kindClear:
		return s.clear(i)
	case k == kindRetention:
		return s.retain(i)
	case k == kindSerial:
		return s.number(i)
	case k == kindCommits:
		return s.nameArea(i)
	case k >= kindOptional:
		return nil
	default:
		return later("an item is of kind %d", k)
	}
}

func (s *State) put(i item) error {
	p, err := parsePut(i)
	if err != nil {
		return err
	}
	h, l := s.history(p.history), s.layout(p.layout)
	switch {
	case h == nil:
		return malformed("there is no history %d", p.history)
	case l == nil:
		return malformed("there is no layout %d", p.layout)
	}
	if p.content.Readable() {
		if _, err := p.parseRest(l); err != nil {
			return err
		}
	}
	if err := s.seen(p.serial); err != nil {
		return err
	}
	if old := h.find(p.key); old != 0 {
		if was := s.rows.serial(old); p.serial <= was {
			return malformed("serial %d is to replace %d", p.serial, was)
		}
		s.gone(h, old)
	}
	at := s.rows.add(i)
	h.set(p.key, at)
	s.counts(h, &p, true)
	s.undo.added(at)
	return nil
}

// gone subtracts a row from the totals. The caller removes it from the index.
func (s *State) gone(h *history, at ref) {
	i := s.rows.at(at)
	p, _ := parsePut(i)
	s.counts(h, &p, false)
	s.rows.mark(at, kindGone)
	s.undo.removed(at)
}

// parseEnding reads the common front of drops and clears.
func parseEnding(f *fields) (history uint32, serial uint64, err error) {
	history = f.u32()
	reserved := f.u32()
	serial = f.u64()
	switch {
	case f.short:
		return 0, 0, malformed("the body is too short")
	case reserved != 0:
		return 0, 0, malformed("a reserved field is %#x", reserved)
	}
	return history, serial, checkSerial(serial)
}

func appendEnding(to []byte, history uint32, serial uint64) []byte {
	to = binary.LittleEndian.AppendUint32(to, history)
	return appendNumbers(binary.LittleEndian.AppendUint32(to, 0), serial)
}

func (s *State) drop(i item) error {
	f := fields{p: i.body()}
	id, serial, err := parseEnding(&f)
	if err != nil {
		return err
	}
	k, err := f.key()
	if err == nil {
		err = f.end()
	}
	if err != nil {
		return err
	}
	s.serial = max(s.serial, serial)
	h := s.history(id)
	if h == nil {
		return nil
	}
	if at := h.find(k); at != 0 && s.rows.serial(at) <= serial {
		s.gone(h, at)
		h.remove(k)
	}
	return nil
}

func (s *State) clear(i item) error {
	f := fields{p: i.body()}
	id, serial, err := parseEnding(&f)
	if err == nil {
		err = f.end()
	}
	if err != nil {
		return err
	}
	s.serial = max(s.serial, serial)
	h := s.history(id)
	if h == nil {
		return nil
	}
	h.numbers.each(func(n int64, at ref) bool {
		if s.rows.serial(at) <= serial {
			s.gone(h, at)
			h.numbers.remove(n)
		}
		return true
	})
	for text, at := range h.texts {
		if s.rows.serial(at) <= serial {
			s.gone(h, at)
			delete(h.texts, text)
		}
	}
	return nil
}

func (s *State) retain(i item) error {
	id, r, err := parseRetention(i.body())
	if err != nil {
		return err
	}
	h := s.history(id)
	if h == nil {
		return malformed("there is no history %d", id)
	}
	s.undo.retentions = append(s.undo.retentions, retained{h, h.retention})
	h.retention = r
	return nil
}

// undo is the information that restores a State to before a record.
type undo struct {
	end        end
	position   position
	defined    int64 // definitions.bytes
	rows       []ref // with cameBit: it was added
	histories  []*history
	layouts    []*layout
	retentions []retained
}

type retained struct {
	history *history
	before  *model.Retention
}

const (
	cameBit  ref = 1 << 63
	mostUndo     = 64 << 10 // capacity for rows that is kept between records
)

func (u *undo) begin(s *State) {
	u.end, u.position, u.defined = s.rows.end(), s.position, s.definitions.bytes
}

func (u *undo) added(at ref)   { u.rows = append(u.rows, at|cameBit) }
func (u *undo) removed(at ref) { u.rows = append(u.rows, at) }

// back undoes all changes since begin, latest first.
func (u *undo) back(s *State) {
	for _, at := range slices.Backward(u.rows) {
		s.reverse(at&^cameBit, at&cameBit != 0)
	}
	for _, r := range slices.Backward(u.retentions) {
		r.history.retention = r.before
	}
	for _, h := range u.histories {
		delete(s.histories, h.id)
		delete(s.names, h.name)
	}
	for _, l := range u.layouts {
		delete(s.layouts, l.ID)
	}
	s.rows.cut(u.end)
	s.position, s.definitions.bytes, s.lately, s.shape = u.position, u.defined, nil, nil
	u.forget()
}

// reverse removes an added row from the index and the totals, or restores a removed one.
func (s *State) reverse(at ref, came bool) {
	i := s.rows.at(at)
	p, _ := parsePut(i)
	h := s.history(p.history)
	s.counts(h, &p, !came)
	if came {
		h.remove(p.key)
		s.rows.mark(at, kindGone)
	} else {
		h.set(p.key, at)
		s.rows.mark(at, kindPut)
	}
}

func (u *undo) forget() {
	if u.rows = u.rows[:0]; cap(u.rows) > mostUndo {
		u.rows = nil
	}
	u.histories, u.layouts, u.retentions = nil, nil, nil
}
