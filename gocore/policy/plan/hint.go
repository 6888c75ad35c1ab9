package plan

import "velocpy/gocore/model"

// Op says what a Hint announces.
type Op uint8

const (
	Restore Op = iota // a restore of Key
	Last              // the final restore of Key
	Drop              // Key will not be needed any more
	Advance           // Key is not needed any more
)

// String is the name of the operation in messages.
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

// Hint is one element of a restore order. Key is for Restore, Last and Drop, Steps for Advance.
type Hint struct {
	Op    Op
	Key   model.Key
	Steps int64
}
