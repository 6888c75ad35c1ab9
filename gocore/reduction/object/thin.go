package object

// thin forgets the objects that have the fewest bytes of the last checkpoint, when they are nearly as many as a checkpoint may have sources. The next
// checkpoint stores these bytes anew, so that it need not become a base, which stores all bytes. Half of the objects stay: then as many checkpoints can follow
// before bytes are stored anew again.
func (w *Writer) thin() {
	last := w.lineage.Last()
	if last == nil {
		return
	}
	named := last.Named()
	if len(named) <= w.options.MaxSources-w.options.MaxSources/8 { // the record may name some more
		return
	}
	w.Forget(last.Scarce(len(named) - (w.options.MaxSources+1)/2)...)
}
