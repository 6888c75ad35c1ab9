package description

import (
	"strconv"

	"velocpy/gocore/model"
)

// Names returns a name for each region, all of them distinct: those of the description, or, where it has none or Check would refuse it, the regions' numbers.
func Names(l *model.Layout) []string {
	all := make([]string, len(l.Spans))
	if Check(l) == nil && l.Text[2] != sequenceKind {
		eachRegion(l, func(i int, name, _ string) { all[i] = name })
		return all
	}
	for i := range all {
		all[i] = "\x00" + strconv.Itoa(i) // hardly the name of a region in another version of the history
	}
	return all
}

// eachRegion calls f with the name and the dtype of each region of a layout that has passed Check.
func eachRegion(l *model.Layout, f func(i int, name, dtype string)) {
	p := fields{p: l.Text}
	p.take(headBytes)
	for i := range l.Spans {
		name := p.text()
		p.take(1 + 4) // library and place
		dtype := p.text()
		p.take(8)
		axes := int(p.u8())
		p.take(8 * axes)
		if p.u8() == orderListed {
			p.take(axes)
		}
		p.take(8 + 8)
		f(i, name, dtype)
	}
}

// headBytes is the length of what stands before the first region.
const headBytes = 1 + 1 + 1 + 4
