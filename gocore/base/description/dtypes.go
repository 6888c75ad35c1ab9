package description

import "velocpy/gocore/model"

// Dtypes returns the dtypes of the regions, as the description has them; nil if Check would refuse it.
func Dtypes(l *model.Layout) []string {
	if Check(l) != nil {
		return nil
	}
	f := fields{p: l.Text}
	f.take(headBytes)
	all := make([]string, len(l.Spans))
	for i := range all {
		f.text()
		f.take(1 + 4) // library and place
		all[i] = f.text()
		f.take(8)
		axes := int(f.u8())
		f.take(8 * axes)
		if f.u8() == orderListed {
			f.take(axes)
		}
		f.take(8 + 8)
	}
	return all
}

// headBytes is the length of what stands before the first region.
const headBytes = 1 + 1 + 1 + 4
