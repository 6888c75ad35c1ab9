package catalog

import (
	"encoding/binary"
	"maps"
	"slices"
)

// SnapshotRecord is how large a snapshot's records are at most, but for items that are larger: as much as a part of a snapshot holds in the log.
const SnapshotRecord = 8<<10 - 44

// Snapshot gives out records that rebuild the State: the histories that have rows or a retention and the layouts of rows, the rows, and the former again:
// so the rows are found also when what defines them is damaged in one of both places. Where it gives nil, the next record should not be stored with those
// before. A record is only good until give returns. Without an error, the State has forgotten what is not in the snapshot, but for what a Record relies on
// that may still come: that is in it.
//
// Before, rows that do not count any more are removed from memory, which takes time for each row put after the first of them.
func (s *State) Snapshot(give func(record []byte) error) error {
	s.rows.compact(func(i item, to ref) {
		p, _ := parsePut(i)
		s.history(p.history).set(p.key, to)
	})
	s.markUsed()
	for _, some := range []func(func([]byte) error) error{s.snapshotDefinitions, s.snapshotRows, s.snapshotDefinitions} {
		if err := some(give); err != nil {
			return err
		}
		if err := give(nil); err != nil {
			return err
		}
	}
	s.forget()
	return nil
}

func (s *State) snapshotRows(give func(record []byte) error) error {
	for _, chunk := range s.rows.chunks {
		for len(chunk) > 0 {
			n := firstItems(chunk)
			if err := give(chunk[:n:n]); err != nil {
				return err
			}
			chunk = chunk[n:]
		}
	}
	return nil
}

// firstItems is how long as many of the first items are as a record has room for, at least one.
func firstItems(p []byte) (n int) {
	for n < len(p) {
		more := itemHead + int(le32(p[n+4:]))
		if n > 0 && n+more > SnapshotRecord {
			break
		}
		n += more
	}
	return n
}

// markUsed marks the layouts that are needed.
func (s *State) markUsed() {
	for _, l := range s.layouts {
		l.used = l.pins > 0
	}
	s.rows.each(func(i item) bool {
		s.layout(le32(i[putLayout:])).used = true
		return true
	})
}

func (h *history) used() bool { return h.rows() > 0 || h.retention != nil || h.pins > 0 }

// snapshotDefinitions gives what rows rely on, by id, so that equal states have equal snapshots.
func (s *State) snapshotDefinitions(give func(record []byte) error) error {
	var p, next []byte
	add := func() (err error) {
		if len(p) > 0 && len(p)+len(next) > SnapshotRecord { // what is larger goes alone, as it may only just fit a record
			err = give(p)
			p = p[:0]
		}
		p, next = append(p, next...), next[:0]
		return err
	}
	next, start := beginItem(next, kindSerial)
	next = endItem(appendNumbers(next, s.serial), start)
	for _, id := range slices.Sorted(maps.Keys(s.histories)) {
		h := s.histories[id]
		if !h.used() {
			continue
		}
		if err := add(); err != nil {
			return err
		}
		if next = appendHistory(next, id, h.name); h.retention != nil {
			next = appendRetention(next, id, h.retention)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.layouts)) {
		l := s.layouts[id]
		if !l.used {
			continue
		}
		if err := add(); err != nil {
			return err
		}
		next = appendLayout(next, id, &l.Layout)
	}
	if err := add(); err != nil {
		return err
	}
	return give(p)
}

func appendLayout(to []byte, id uint32, l *Layout) []byte {
	to, start := beginItem(to, kindLayout)
	to = binary.LittleEndian.AppendUint32(to, id)
	return endItem(appendContents(to, l), start)
}

// forget drops the definitions that nothing needs. Nobody may rely on them: a snapshot of which nobody knows whether it counts has not got them.
func (s *State) forget() {
	s.lately, s.shape = nil, nil
	for id, h := range s.histories {
		if !h.used() {
			delete(s.histories, id)
			delete(s.names, h.name)
			s.defined -= definedBytes(len(h.name))
		}
	}
	for id, l := range s.layouts {
		if !l.used {
			delete(s.layouts, id)
			s.defined -= l.definedBytes()
		}
	}
}
