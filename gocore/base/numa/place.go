package numa

import "velocpy/gocore/base/logring"

// Place is Prefer for memory that may be on any node. If the kernel refuses it, Place logs that; copies may then be slower. Without nodes it does
// nothing.
func Place(what string, p []byte, nodes ...int) {
	if len(nodes) == 0 {
		return
	}
	if err := Prefer(p, nodes...); err != nil {
		logring.Add(logring.Debug, what+" lies on any NUMA node: "+err.Error())
	}
}
