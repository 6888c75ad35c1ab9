package cache

import (
	"fmt"
	"sync"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/object"
)

// Lineage is the state of a history that is de-duplicated on its way to the disk. Its checkpoints go there one after the other, since each refers to those
// before.
type Lineage struct {
	// Turn is held by the goroutine that writes a checkpoint. It is locked before the cache's lock, and guards what follows. Continue changes ID and Writer with
	// both locks held.
	Turn   sync.Mutex
	ID     uint64
	Writer *object.Writer
	Places map[uint32]model.Source // the objects on the disk that the next checkpoint may refer to, by the number of their checkpoint
	Begun  bool                    // Writer goes on with an earlier lineage, or it was found that it cannot
	Last   uint64                  // the engine's number of Writer's last checkpoint; 0: there is none, or it was stored before the store was opened and has no record

	Options  object.Options // of Writer
	Sections bool           // the containers of its objects are of the version that has sections
	Most     int64          // bytes of memory that Writer may keep

	last   int64 // bytes of the latest object; 0: there was none. The cache's lock guards it
	warned bool  // that a checkpoint needs more memory than Most. The cache's lock guards it
}

// NewLineage returns a lineage without a checkpoint, given a random number. Most and Sections are the caller's to set.
func NewLineage(o object.Options, random uint64) (*Lineage, error) {
	o.Lineage = o.Number(random)
	w, err := object.NewWriter(o)
	if err != nil {
		return nil, err
	}
	return &Lineage{ID: o.Lineage, Writer: w, Places: map[uint32]model.Source{}, Options: o}, nil
}

// Continue makes the lineage one that has checkpoints on the disk. Turn and the cache's lock are held.
func (l *Lineage) Continue(id uint64, w *object.Writer, places map[uint32]model.Source) {
	l.ID, l.Writer, l.Places = id, w, places
}

// Fits tells whether a checkpoint with these regions needs no more memory for its tree than there is, and warns of the first that does. The cache's lock is held.
func (l *Lineage) Fits(history string, spans []model.Span) bool {
	sizes := make([]uint64, len(spans))
	for i := range spans {
		sizes[i] = uint64(spans[i].Bytes)
	}
	need := l.Writer.Memory(sizes)
	if need > l.Most && !l.warned {
		l.warned = true
		logring.Add(logring.Warning, fmt.Sprintf("history %.80q: the digests of a checkpoint's chunks need %s of memory, more than the %s that they may take (a quarter of the "+
			"host tier), so it is encoded and not de-duplicated; larger chunks need less", history, quantity.Exact(need), quantity.Exact(l.Most)))
	}
	return need <= l.Most
}

// expect predicts the room of the next object, of a checkpoint that takes so much in memory. An object that needs more is written again, so the prediction is
// generous. It is less than that of the plain bytes, or the most that an object may need.
func (l *Lineage) expect(room int64) int64 {
	const least = 64 << 10
	if n := l.last + l.last/2 + least; l.last > 0 && n < room {
		return n
	}
	return mostOfObject(room)
}

// mostOfObject is the room that is reserved for the object of a checkpoint that takes so much in memory. A container needs up to a thousandth more than its plain
// bytes, in a region of one block up to a thirtieth, and there is metadata. If that had no room, bytes that do not become smaller would be stored as they are,
// and no later checkpoint could refer to them.
func mostOfObject(room int64) int64 {
	const metadata = 4096
	return room + room/32 + metadata
}

// Wrote tells how many bytes the latest object has. The cache's lock is held.
func (l *Lineage) Wrote(bytes int64) { l.last = bytes }
