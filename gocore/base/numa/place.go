package numa

import "velocpy/gocore/base/logring"

// Place is Prefer for memory that may lie on any node: where the kernel refuses it, the log says so, and copies may be slower. Without nodes nothing is done.
func Place(what string, p []byte, nodes ...int) {
	if len(nodes) == 0 {
		return
	}
	if err := Prefer(p, nodes...); err != nil {
		logring.Add(logring.Debug, what+" lies on any NUMA node: "+err.Error())
	}
}
