package store

import (
	"encoding/json"
	"errors"

	"velocpy/gocore/engine"
	"velocpy/gocore/status"
)

// belated is what devices found out, in the order of finding, about bytes that restores had been given before: these do not wait for the
// verification of what came up for them. The next restore or wait of the history concerned tells it, once, or the end of the store.
type belated []finding

type finding struct {
	history *engine.History
	err     *status.Error
}

// foundLate bounds what is kept: the first findings tell where to look.
const foundLate = 64

// subject names a checkpoint to the other side of the contract, which knows what the region of a layout is called.
type subject struct {
	History any    `json:"history"` // null: too long to be told
	Key     any    `json:"key"`     // the same
	Layout  uint64 `json:"layout"`
}

// longestName is as many bytes of a name as an error has room for.
const longestName = 100

// find keeps what is wrong with the bytes of a load, if somebody was given them. The lock is held.
func (b *belated) find(x *engine.Transfer, err error) {
	var wrong *status.Error
	if !x.Early || !errors.As(err, &wrong) || wrong.Code != status.Corrupt || len(*b) >= foundLate {
		return
	}
	about := subject{History: short(x.Rec.Hist.Name), Key: x.Rec.Key.Number, Layout: x.Rec.Body.(*body).layout.id}
	if x.Rec.Key.IsText {
		about.Key = short(x.Rec.Key.Text)
	}
	text, _ := json.Marshal(about) // of numbers and text: it cannot fail
	*b = append(*b, finding{x.Rec.Hist, status.New(status.Belated, "%s", text).AtTier(wrong.Tier).AtRegion(wrong.Region)})
}

func short(name string) any {
	if len(name) > longestName {
		return nil
	}
	return name
}

// tell takes out the first finding about a history, or, with nil, about any; nil when there is none. The lock is held.
func (b *belated) tell(h *engine.History) error {
	for i, f := range *b {
		if h == nil || f.history == h {
			*b = append((*b)[:i], (*b)[i+1:]...)
			return f.err
		}
	}
	return nil
}
