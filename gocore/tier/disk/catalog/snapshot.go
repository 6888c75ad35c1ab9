package catalog

import (
	"encoding/binary"
	"maps"
	"slices"
)

// SnapshotRecord bounds the records of a snapshot, except for single larger items: it is the capacity of a snapshot part in the log.
const SnapshotRecord = 8<<10 - 44

// Snapshot gives records that rebuild the State: the definitions in use (histories with rows or a retention, and layouts of rows), then the rows, then the
// definitions again. So the rows survive damage to one of the two copies of a definition. A nil record asks the caller not to store the next record with
// the earlier ones. A record is valid until give returns. On success, the State forgets definitions that are not in the snapshot. The snapshot includes
// those that pending Records rely on.
//
// Snapshot first compacts dropped rows in memory, which takes time for each row put after the first dropped one.
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

// firstItems is the length of the first items that fit a record, at least one.
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

// markUsed marks the layouts in use.
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

// snapshotDefinitions gives the definitions, sorted by id, so that equal states have equal snapshots.
func (s *State) snapshotDefinitions(give func(record []byte) error) error {
	var p, next []byte
	add := func() (err error) {
		if len(p) > 0 && len(p)+len(next) > SnapshotRecord { // a larger one gets a record of its own, as it may only just fit
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

// forget drops unused definitions. No later record may rely on them, as the snapshot, which may or may not count, lacks them.
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
