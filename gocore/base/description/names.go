package description

import (
	"strconv"

	"velocpy/gocore/model"
)

// mostNamed bounds the bytes of a name that Names returns: what refers to regions by name keeps the length in 16 bits.
const mostNamed = 1<<16 - 1

// Names returns a name for each region, no two alike: those that the description has. The regions of a sequence, those of a layout whose text Check would
// refuse, and those of one with a name of more than 65535 bytes are named by their index: "#0", "#1" and so on.
func Names(l *model.Layout) []string {
	all := make([]string, len(l.Spans))
	if Check(l) == nil && l.Text[2] != sequenceKind && takeNames(l, all) {
		return all
	}
	for i := range all {
		all[i] = "#" + strconv.Itoa(i)
	}
	return all
}

// takeNames fills in the names of a description that is right; false if one is too long.
func takeNames(l *model.Layout, all []string) bool {
	f := fields{p: l.Text}
	f.take(headBytes)
	for i := range all {
		all[i], _ = f.region(l.Spans[i])
		if len(all[i]) > mostNamed {
			return false
		}
	}
	return true
}
