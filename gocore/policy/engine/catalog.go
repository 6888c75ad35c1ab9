package engine

import "velocpy/gocore/model"

// Catalog lists the checkpoints in the durable tiers. Its methods must not call the engine, except Adopt in Find, and ExpectReleases with a positive
// number.
//
// From the end of a flush to a durable tier on, the catalog refers to the copy there, and not any more to one in a tier above.
type Catalog interface {
	// Lookup tells whether Find would find a checkpoint of a key that has no record, and the size of its slot. It changes nothing.
	Lookup(h *History, k model.Key) (size int64, ok bool)
	// Find adopts the checkpoint of a key that has no record. It does so if the catalog has one and Removed has not reported its replacement. Otherwise
	// it returns nil.
	Find(h *History, k model.Key) *Record
	// Keeps is called when a record gives back its room at an offset of durable or referring tier t, except when a lower tier has its bytes and the copy is
	// evicted. It tells whether the room stays reserved: the catalog still refers to it, or other copies need its bytes.
	Keeps(r *Record, t int, off int64) bool
	// Freed returns a reserved room in tier t that nobody needs since the latest call of Keeps, and forgets it. The engine calls it until ok is false.
	Freed(t int) (off, bytes int64, ok bool)
	// Removed tells that a version is about to be dropped, consumed (by is nil), or replaced by another one. It is told of all versions, in whatever
	// tier they are.
	Removed(r, by *Record)
}

// catalogued tells whether a catalog lists the checkpoints in tier t.
func (s *state) catalogued(t int) bool { return s.tiers[t].Durable && s.cfg.Catalog != nil }

// asksKeeper tells whether a room of tier t may be needed when its record gives it back.
func (s *state) asksKeeper(t int) bool {
	return s.cfg.Catalog != nil && (s.tiers[t].Durable || s.tiers[t].Referring)
}
