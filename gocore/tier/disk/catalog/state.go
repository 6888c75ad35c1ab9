package catalog

import "velocpy/gocore/model"

// State is the result of all applied records. It returns copies, except for layouts and retentions, which callers must not change.
type State struct {
	definitions
	position
	rows    rows
	puzzles int // unreadable rows
	undo    undo
}

// New returns an empty State.
func New() *State {
	return &State{definitions: definitions{histories: map[uint32]*history{}, names: map[string]*history{}, layouts: map[uint32]*layout{}}}
}

// Histories lists the histories, in no order. It visits every row's serial.
func (s *State) Histories() []HistoryInfo {
	all := make([]HistoryInfo, 0, len(s.histories))
	last := map[uint32]item{}
	s.rows.each(func(i item) bool {
		id := le32(i[putHistory:])
		if before := last[id]; before == nil || le64(before[putSerial:]) < le64(i[putSerial:]) {
			last[id] = i
		}
		return true
	})
	for id, h := range s.histories {
		info := HistoryInfo{ID: id, Name: h.name, Rows: h.rows(), Bytes: h.bytes.number(), Retention: h.retention}
		if i := last[id]; i != nil {
			p, _ := parsePut(i)
			info.Last, info.Time = p.serial, p.time
		}
		all = append(all, info)
	}
	return all
}

// Find returns the row of a key.
func (s *State) Find(history uint32, key model.Key) (Row, bool) {
	at, ok := s.find(history, key)
	if !ok {
		return Row{}, false
	}
	return s.decode(s.rows.at(at)), true
}

// Serial returns the serial of a key's row; it decodes no other field.
func (s *State) Serial(history uint32, key model.Key) (uint64, bool) {
	at, ok := s.find(history, key)
	if !ok {
		return 0, false
	}
	return s.rows.serial(at), true
}

// Meta returns the meta of a key's row, and the layout whose text describes it. ok is false without a readable row.
func (s *State) Meta(history uint32, key model.Key) (l *Layout, meta string, ok bool) {
	at, ok := s.find(history, key)
	if !ok {
		return nil, "", false
	}
	i := s.rows.at(at)
	p, _ := parsePut(i)
	if !p.content.Readable() {
		return nil, "", false
	}
	of := s.layout(p.layout)
	rest, _ := p.split(of)
	return &of.Layout, string(rest.meta), true
}

func (s *State) find(history uint32, key model.Key) (at ref, ok bool) {
	h := s.history(history)
	switch {
	case h == nil:
	case key.IsText: // avoids rawKey, which would copy the text
		at = h.texts[key.Text]
	default:
		at = h.numbers.find(key.Number)
	}
	return at, at != 0
}

func (s *State) decode(i item) Row { return decode(i, s.layout(le32(i[putLayout:]))) }

// Each calls f for the rows of a history, in no order, until f returns false. f must not change the State.
func (s *State) Each(history uint32, f func(Row) bool) {
	if h := s.history(history); h != nil {
		h.each(func(_ model.Key, at ref) bool { return f(s.decode(s.rows.at(at))) })
	}
}

// EachKey is Each with only keys and serials.
func (s *State) EachKey(history uint32, f func(key model.Key, serial uint64) bool) {
	if h := s.history(history); h != nil {
		h.each(func(k model.Key, at ref) bool { return f(k, s.rows.serial(at)) })
	}
}

// EachExtent calls f for the extents of all readable rows, until f returns false. Rows come in the order of their puts, each with all its extents in
// sequence. Those of sources are not among them, as several rows may share them: EachDifference has these.
func (s *State) EachExtent(f func(history uint32, serial uint64, e Extent) bool) {
	s.rows.each(func(i item) bool {
		p, _ := parsePut(i)
		return !p.content.Readable() || p.extents(func(e Extent) bool { return f(p.history, p.serial, e) })
	})
}

// Unreadable is the number of rows with contents that this version does not understand. Their ranges on disk are unknown.
func (s *State) Unreadable() int { return s.puzzles }

// LiveBytes is the approximate length of a snapshot.
func (s *State) LiveBytes() int64 { return s.rows.live + s.definitions.bytes }

// counts adds a validated row to the totals of its history, or subtracts it.
func (s *State) counts(h *history, p *put, in bool) {
	switch readable := p.content.Readable(); {
	case !readable && in:
		s.puzzles++
	case !readable:
		s.puzzles--
	case in:
		h.bytes.add(p.bytes())
	default:
		h.bytes.subtract(p.bytes())
	}
}

// EachIn calls f for the readable rows with an extent of their own in a data file, in the order of their puts, until f returns false.
func (s *State) EachIn(file uint64, f func(history string, row Row) bool) {
	s.rows.each(func(i item) bool {
		p, _ := parsePut(i)
		if !p.content.Readable() || !p.liesIn(file) {
			return true
		}
		return f(s.history(p.history).name, s.decode(i))
	})
}

// liesIn tells whether a readable put has an extent in a data file.
func (p *put) liesIn(file uint64) bool {
	return !p.extents(func(e Extent) bool { return e.File != file })
}
