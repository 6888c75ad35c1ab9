package retention

import "velocpy/gocore/model"

// Written is a key and the time of its writing.
type Written struct {
	At  int64
	Key model.Key
}
