package catalog

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
	s.markUsed(&s.rows)
	define := func(give func([]byte) error) error { return s.definitions.snapshot(s.serial, give) }
	for _, some := range []func(func([]byte) error) error{define, s.snapshotRows, define} {
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
