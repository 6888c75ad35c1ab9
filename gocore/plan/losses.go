package plan

// losses are keys that are not expected any more, each once, in the order in which that came about.
type losses struct {
	keys []Key
	held map[Key]struct{}
}

func (l *losses) add(keys ...Key) {
	for _, k := range keys {
		if _, ok := l.held[k]; ok {
			continue
		}
		if l.held == nil {
			l.held = map[Key]struct{}{}
		}
		l.held[k] = struct{}{}
		l.keys = append(l.keys, k)
	}
}

// take gives all of them out.
func (l *losses) take() []Key {
	keys := l.keys
	*l = losses{}
	return keys
}
