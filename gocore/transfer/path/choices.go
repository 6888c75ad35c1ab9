package path

import (
	"velocpy/gocore/base/description"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/regions"
)

// The choices of an encoder for a checkpoint follow from its layout, and from samples of its bytes.

// kindsOf are those of the regions' elements.
func kindsOf(l *checkpoint.Layout) []codec.Kind {
	all, dtypes := make([]codec.Kind, len(l.Spans)), description.Dtypes(&l.Layout)
	for i := range all {
		if all[i] = codec.Int8; dtypes != nil {
			all[i] = codec.KindOf(dtypes[i])
		}
	}
	return all
}

// anyModes chooses all modes for all regions.
func anyModes(l *checkpoint.Layout) []regions.Choice {
	kinds := kindsOf(l)
	all := make([]regions.Choice, len(kinds))
	for i, k := range kinds {
		all[i] = regions.Choice{Kind: k, Modes: codec.AllModes}
	}
	return all
}

// plainChoices leaves the bytes of all regions as they are.
func plainChoices(l *checkpoint.Layout) []regions.Choice {
	all := anyModes(l)
	for i := range all {
		all[i].Modes = 0
	}
	return all
}

// sample chooses the modes of every region from some of its chunks. It also returns the bytes of the regions, and how many they are expected to become.
func sample(l *checkpoint.Layout, slot []byte) (choices []regions.Choice, plain, encoded int64) {
	choices = make([]regions.Choice, len(l.Spans))
	for i, k := range kindsOf(l) {
		span := l.Spans[i]
		e, err := codec.NewEncoder(k, codec.AllModes)
		if err != nil { // cannot happen: the kind is one of package codec
			continue
		}
		found, err := e.Survey(slot[span.Offset:span.End()], nil)
		if err != nil { // cannot happen: there is no reference
			continue
		}
		var will int64
		choices[i], will = encoding.Choose(k, &found)
		if plain += span.Bytes; found.Plain > 0 {
			containers := model.Containers(span.Bytes, partBytes)
			encoded += int64(float64(will)/float64(found.Plain)*float64(span.Bytes)) + containers*int64(codec.PayloadsAt(0))
		}
	}
	return choices, plain, encoded
}
