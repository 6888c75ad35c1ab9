package plan

import "velocpy/gocore/model"

// losses are keys that are not expected any more, each once, in the order in which that happened.
type losses struct {
	keys []model.Key
	held map[model.Key]struct{}
}

func (l *losses) add(keys ...model.Key) {
	for _, k := range keys {
		if _, ok := l.held[k]; ok {
			continue
		}
		if l.held == nil {
			l.held = map[model.Key]struct{}{}
		}
		l.held[k] = struct{}{}
		l.keys = append(l.keys, k)
	}
}

// take returns all of them and empties the list.
func (l *losses) take() []model.Key {
	keys := l.keys
	*l = losses{}
	return keys
}
