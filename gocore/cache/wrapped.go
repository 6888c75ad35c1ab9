package cache

import (
	"math/rand/v2"

	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/object"
)

// A disk keeps what a device has encoded with an anchor as an object of a lineage, and the anchor too: then the room of the anchor's object stays reserved as long as
// one that needs it is there. The containers are written as they are. Other encoded checkpoints have no object.

// Wrapped is the lineage of such objects of one history. The cache's lock guards it.
type Wrapped struct {
	ID     uint64
	last   uint32
	places map[*engine.Object]model.Source // of the anchors
}

// wrappedLineages has the lineages of all histories by their names.
type wrappedLineages struct {
	tiers     *tiers
	byHistory map[string]*Wrapped
}

// WrappedOf returns that of a history.
func (ws *wrappedLineages) WrappedOf(history string) *Wrapped {
	w := ws.byHistory[history]
	if w == nil {
		w = &Wrapped{ID: object.Unnumbered(rand.Uint64()), places: map[*engine.Object]model.Source{}}
		ws.byHistory[history] = w
	}
	return w
}

// Next returns the number of the next object.
func (w *Wrapped) Next() uint32 {
	w.last++
	return w.last
}

// IsAt tells whether an anchor's object has been written at an offset, though nothing new may need it any more.
func (w *Wrapped) IsAt(of *engine.Object, off int64) bool {
	s, ok := w.places[of]
	return ok && s.Offset == off
}

// HoldAnchor finds the object of an anchor, and holds it for one that is about to be written; nil: the disk does not have it.
func (ws *wrappedLineages) HoldAnchor(w *Wrapped, of *engine.Object) *model.Source {
	s, ok := w.places[of]
	if !ok || len(ws.tiers.Disk.Hold(w.ID, []model.Source{s})) > 0 {
		return nil
	}
	return &s
}

// WroteWrapped records that an object has been written at an offset, and forgets the anchors that are gone.
func (ws *wrappedLineages) WroteWrapped(w *Wrapped, o *engine.Object, off int64, x *model.Difference) {
	ws.tiers.Disk.Wrote(off, x)
	if !o.Made().Version.Anchor {
		return
	}
	for other, s := range w.places {
		if !ws.tiers.Disk.HasObject(w.ID, &s) {
			delete(w.places, other)
		}
	}
	w.places[o] = model.Source{Number: x.Number, Data: x.Data, Meta: x.Meta, Offset: off}
}

// IsWrapped tells whether the disk keeps the encoded bytes that a transfer brings down as an object. A checkpoint becomes an anchor before it goes to the disk.
func IsWrapped(x *engine.Transfer) bool {
	return x.Rec.Version.Anchor || x.Obj.Related(x.From) != nil
}

// roomOfWrapped is the most that the object of a checkpoint may need whose room in memory is so much.
func roomOfWrapped(l *checkpoint.Layout, room int64) int64 { return mostOfObject(room) + metadataOf(l) }

// predictWrapped is at least what the object of these containers takes.
func predictWrapped(l *checkpoint.Layout, e *model.Encoding) int64 {
	const perContainer = 4
	return e.Bytes() + metadataOf(l) + perContainer*int64(len(e.Lengths))
}

// metadataOf bounds the metadata of an object with what a device has encoded, but for the lengths of containers. It is asked for by every capture, so it does not read the
// names in the layout's text.
func metadataOf(l *checkpoint.Layout) int64 {
	const region, least = 64, 256
	return least + region*int64(len(l.Spans)) + int64(len(l.Text))
}
