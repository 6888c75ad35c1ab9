package object

import (
	"maps"
	"slices"
)

// mostlyDead divides the bytes of an object. If the last checkpoint has less than that part of them, what is left is stored anew: so of the objects without
// checkpoints that it needs, it uses half the bytes at least.
const mostlyDead = 2

// Compact makes nothing later refer to objects that are mostly dead: the next checkpoint stores what it needs of their bytes anew, and they go with the last of
// the earlier checkpoints that need them. alone are objects whose own checkpoints are gone; of others nothing would be gained. It looks at the share that the
// last checkpoint has in them.
func (w *Writer) Compact(alone []uint32) {
	last := w.lineage.Last()
	if last == nil || len(alone) == 0 {
		return
	}
	var gone []uint32
	owned := last.Owned()
	for _, number := range alone {
		stored, ok := w.stored[number]
		serves := slices.Contains(w.bases, number) || w.anchor.use && number == w.anchor.number // without it the next object would be larger
		if ok && owned[number]*mostlyDead < uint64(stored) && !serves {
			gone = append(gone, number)
		}
	}
	w.Forget(gone...)
}

// remember keeps how many bytes an object has, and forgets that of objects that nothing later can refer to, before they become many.
func (w *Writer) remember(d *Draft) {
	w.stored[d.number] = d.Stored()
	if len(w.stored) < 8*w.options.MaxSources {
		return
	}
	known := w.Known()
	maps.DeleteFunc(w.stored, func(number uint32, _ int64) bool {
		_, ok := slices.BinarySearch(known, number)
		return !ok
	})
}
