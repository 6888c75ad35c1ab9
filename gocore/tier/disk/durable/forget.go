package durable

import "velocpy/gocore/tier/disk/catalog"

// forget drops rows from the state; gone maps serials to histories.
func (r *records) forget(gone map[uint64]uint32) error {
	if len(gone) == 0 {
		return nil
	}
	w := catalog.NewWriter(r.state)
	for _, h := range r.state.Histories() {
		record := w.Record()
		var bad error
		r.state.Each(h.ID, func(row catalog.Row) bool {
			if of, ok := gone[row.Serial]; ok && of == h.ID {
				bad = record.Drop(h.Name, row.Key, row.Serial)
			}
			return bad == nil
		})
		if bad != nil {
			return bad
		}
		if err := w.Acknowledged(record); err != nil {
			return err
		}
	}
	return nil
}
