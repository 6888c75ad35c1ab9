package description

import "velocpy/gocore/model"

// Dtypes returns the dtypes of the regions, as the description has them; nil if Check would refuse it.
func Dtypes(l *model.Layout) []string {
	if Check(l) != nil {
		return nil
	}
	all := make([]string, len(l.Spans))
	eachRegion(l, func(i int, _, dtype string) { all[i] = dtype })
	return all
}
