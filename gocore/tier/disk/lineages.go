package disk

import (
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// A difference on the disk needs the objects of earlier checkpoints of its lineage. Their room stays reserved as long as a copy on the disk needs it, also when
// the checkpoint that wrote an object is gone. All objects that a difference needs are among its sources, so an object without a checkpoint needs no others.

// lineages counts how many copies on the disk need each object of a lineage. The store's lock guards it.
type lineages struct {
	tier    *Tier
	objects map[int64]*lineageObject // by offset on the disk
	freed   []model.Span             // rooms that nobody needs any more, for the engine
}

// lineageObject is the object that a checkpoint of a lineage has written.
type lineageObject struct {
	lineage uint64
	number  uint32
	bytes   int64
	users   int  // copies that refer to it, those that are being written included
	doubted bool // nothing new may need it: a sync of its file has failed, so that it may not be on the medium, or bytes of it are damaged
	alone   bool // the checkpoint that wrote it has given up its room
}

// Hold records that a difference which is to be written needs its sources. If some of these are gone, it holds none, and returns their numbers.
func (l *lineages) Hold(lineage uint64, sources []model.Source) (gone []uint32) {
	for i := range sources {
		if s := &sources[i]; !l.has(lineage, s.Number, s.Offset) {
			gone = append(gone, s.Number)
		}
	}
	if len(gone) > 0 {
		return gone
	}
	l.Share(sources)
	return nil
}

// Share records that sources are needed once more, which a copy on the disk holds that stays meanwhile: also those that nothing new may need. LetGo undoes it.
func (l *lineages) Share(sources []model.Source) {
	for i := range sources {
		l.objects[sources[i].Offset].users++
	}
}

// HasObject tells whether the disk still has the object of a checkpoint of a lineage.
func (l *lineages) HasObject(lineage uint64, s *model.Source) bool {
	return l.has(lineage, s.Number, s.Offset)
}

// Alone tells whether the checkpoint that wrote an object has given up its room, so that the object is there for others alone.
func (l *lineages) Alone(s *model.Source) bool {
	o := l.objects[s.Offset]
	return o != nil && o.alone
}

// LetGo undoes Hold for a difference that was not written after all. The rooms that it alone needed are free.
func (l *lineages) LetGo(sources []model.Source) {
	l.letGo(sources)
	l.releaseFreed()
}

// Damaged records that an object has bytes which are not those that were written: nothing new is to need it.
func (l *lineages) Damaged(off int64) {
	if o := l.objects[off]; o != nil {
		o.doubted = true
	}
}

// releaseFreed gives the engine the rooms that nobody needs, outside of a call of the engine.
func (l *lineages) releaseFreed() {
	for off, n, ok := l.Freed(); ok; off, n, ok = l.Freed() {
		l.tier.engine().Release(l.tier.o.Now(), l.tier.index, off, n)
	}
}

// releaseRoom gives back a reserved room on the disk that the catalog does not refer to any more, unless copies need the object in it, and the rooms that nobody
// needs since.
func (l *lineages) releaseRoom(now, off, bytes int64) {
	if !l.keeps(off) {
		l.tier.engine().Release(now, l.tier.index, off, bytes)
	}
	l.releaseFreed()
}

// recoverLineages counts what the rows of the catalog need, and notes the lineages that may go on.
func (v *versions) recoverLineages() {
	l := &v.tier.lineages
	v.state.EachDifference(func(row catalog.Row) bool {
		x, err := v.Difference(&row)
		off, _, failed := v.Place(&row)
		if err != nil || failed != nil {
			return true // cannot happen: opening the store would have failed
		}
		if o := l.objects[off]; o != nil {
			o.alone = false
		} else {
			l.add(off, lineageObject{lineage: x.Lineage, number: x.Number, bytes: x.Bytes()})
		}
		for i := range x.Sources {
			if s := &x.Sources[i]; l.objects[s.Offset] == nil { // its own row may follow
				l.add(s.Offset, lineageObject{lineage: x.Lineage, number: s.Number, bytes: s.Bytes(), alone: true})
			}
		}
		l.Share(x.Sources)
		if v.dir != nil {
			v.past.add(&row)
		}
		return true
	})
}

// Wrote records that the object of a difference has been written at an offset, so that later ones may refer to it.
func (l *lineages) Wrote(off int64, x *model.Difference) {
	l.add(off, lineageObject{lineage: x.Lineage, number: x.Number, bytes: x.Bytes()})
}

// Freed returns a room that nobody needs any more, and forgets it.
func (l *lineages) Freed() (off, bytes int64, ok bool) {
	last := len(l.freed) - 1
	if last < 0 {
		return 0, 0, false
	}
	s := l.freed[last]
	l.freed = l.freed[:last]
	return s.Offset, s.Bytes, true
}

// giveUp takes the difference from a version whose copy on the disk goes.
func (l *lineages) giveUp(b *checkpoint.Version) {
	if b.Difference != nil {
		l.letGo(b.Difference.Sources)
		b.Difference = nil
	}
}

func (l *lineages) has(lineage uint64, number uint32, off int64) bool {
	o := l.objects[off]
	return o != nil && o.lineage == lineage && o.number == number && !o.doubted
}

// doubt makes nothing new need the objects that have bytes in a range.
func (l *lineages) doubt(from, end int64) {
	for off, o := range l.objects {
		if off < end && off+o.bytes > from {
			o.doubted = true
		}
	}
}

func (l *lineages) add(off int64, o lineageObject) {
	if l.objects == nil {
		l.objects = map[int64]*lineageObject{}
	}
	l.objects[off] = &o
}

func (l *lineages) letGo(sources []model.Source) {
	for i := range sources {
		off := sources[i].Offset
		o := l.objects[off]
		if o.users--; o.users == 0 && o.alone {
			l.freed = append(l.freed, model.Span{Offset: off, Bytes: o.bytes})
			delete(l.objects, off)
		}
	}
}

// keeps is called when the checkpoint that wrote the object at an offset gives up its room. It tells whether copies still need it.
func (l *lineages) keeps(off int64) bool {
	o := l.objects[off]
	switch {
	case o == nil:
		return false
	case o.users > 0:
		o.alone = true
		return true
	}
	delete(l.objects, off)
	return false
}
