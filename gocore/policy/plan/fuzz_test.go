package plan

import (
	"fmt"
	"testing"

	"velocpy/gocore/model"
)

// The queue of hints behaves like the slice. Each byte is a step: its upper half is the operation, its lower half the key.
func FuzzHints(f *testing.F) {
	f.Fuzz(func(t *testing.T, patience int8, steps []byte) {
		if len(steps) > 128 { // the model is slow
			return
		}
		o := New(Options{Patience: int(patience)})
		m := &reference{patience: max(int(patience), 0)}
		if patience == 0 {
			m.patience = 8
		}
		const keys = 16
		for i, b := range steps {
			key := model.NumberKey(int64(b & 15))
			if b&3 == 2 {
				key = model.TextKey(fmt.Sprint("t", b&15))
			}
			switch what := b >> 4; what {
			case 0, 1, 2, 3, 4, 5, 6:
				h := Hint{Op: []Op{Restore, Last, Drop, Advance, Restore, Restore, Restore}[what], Key: key, Steps: int64(b&15) - 3}
				o.Append(h)
				m.append(h)
			case 7: // a batch, with repetitions according to the byte
				list := make([]Hint, b&7)
				for k := range list {
					list[k] = Hint{Op: Restore, Key: model.NumberKey(int64(k % (i%5 + 1)))}
				}
				o.Append(list...)
				m.append(list...)
			case 8, 9, 10: // in turn
				if at := m.first(nil); at >= 0 {
					sameVerdict(t, o, m, m.items[at].Key)
				}
			case 11:
				if at := int(b & 15); at < len(m.items) && m.items[at].restores() {
					sameVerdict(t, o, m, m.items[at].Key)
				}
			case 15:
				o.Clear()
				m.items = nil
			default:
				sameVerdict(t, o, m, key)
			}
			if i%32 == 31 && len(m.items) < 64 {
				sameState(t, o, m, keys)
			}
		}
		sameState(t, o, m, keys)
	})
}
