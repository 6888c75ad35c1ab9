package plan

import "velocpy/gocore/model"

// Op says what a Hint announces.
type Op uint8

const (
	Restore Op = iota // a restore of Key
	Last              // the final restore of Key
	Drop              // Key will not be needed any more
	Advance           // Steps restore intervals pass without a restore
)

// String names the operation as messages do.
func (op Op) String() string {
	switch op {
	case Restore:
		return "restore"
	case Last:
		return "last"
	case Drop:
		return "drop"
	case Advance:
		return "advance"
	}
	return "unknown"
}

// Hint is one element of a restore order. Key belongs to Restore, Last and Drop, Steps to Advance.
type Hint struct {
	Op    Op
	Key   model.Key
	Steps int64
}
