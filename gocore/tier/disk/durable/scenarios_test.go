package durable

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"velocpy/gocore/model"
)

// Sizes of checkpoints: zero, around a block, and over several data files.
var sizes = []int64{0, 1, 100, 4095, 4096, 4097, 10_000, 20_000, 36_000}

func (p *player) size() int64 { return sizes[p.r.IntN(len(sizes)-2)] }

// key is a number or a text.
func (p *player) key(n int) model.Key {
	if n%3 == 2 {
		return model.TextKey(fmt.Sprint("key ", n))
	}
	return model.NumberKey(int64(n*n - 5))
}

// try runs a step, and repeats it once if it fails; if only one call fails, the second run must succeed.
func (p *player) try(what string, once bool, do func() bool) {
	if do() {
		return
	}
	if p.d == nil {
		p.open()
	}
	if !do() && once {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wrong = fmt.Errorf("%s failed twice", what)
	}
}

// scenario is a sequence of store operations; once: at most one call fails.
type scenario struct {
	name string
	play func(p *player, once bool)
}

var scenarios = []scenario{
	{"make", func(p *player, once bool) {
		for range 3 {
			p.try("open", once, p.open)
			p.try("put", once, func() bool { return p.commit(p.put("a", p.key(1), p.size())) })
			p.try("close", once, p.close)
		}
	}},
	{"stream", func(p *player, once bool) {
		p.try("open", once, p.open)
		for i := range 8 {
			p.try("puts", once, func() bool {
				var group []*Change
				for j := range 1 + i%3 {
					group = append(group, p.put([]string{"a", "history of others"}[i%2], p.key(3*i+j), []int64{0, 1, 4096, 4097, 8000}[(i+j)%5]))
				}
				return p.commit(group...)
			})
		}
		p.try("large", once, func() bool { return p.commit(p.put("a", p.key(100), 36_000)) })
	}},
	{"replace", func(p *player, once bool) {
		p.try("open", once, p.open)
		for i := range 10 {
			p.try("put", once, func() bool { return p.commit(p.put("a", p.key(i%3), p.size())) })
			if i == 5 {
				p.try("close", once, p.close)
				p.try("open", once, p.open)
			}
		}
		p.try("twice at once", once, func() bool { return p.commit(p.put("a", p.key(0), 5000), p.put("a", p.key(0), 4096)) })
	}},
	{"drop", func(p *player, once bool) {
		p.blocks = 32
		p.try("open", once, p.open)
		for i := range 5 {
			p.try("put", once, func() bool { return p.commit(p.put("a", p.key(i), p.size()), p.put("b", p.key(i), 1)) })
			p.try("drop", once, func() bool {
				return p.commit(p.drop("a", p.key(i-1)), p.retain("b", model.Retention{Last: uint64(i % 2)}))
			})
			p.try("put there", once, func() bool { return p.commit(p.put("c", p.key(0), 20_000)) })
		}
		p.try("clear", once, func() bool { return p.commit(p.clear("b")) })
		p.try("put", once, func() bool { return p.commit(p.drop("c", p.key(0)), p.put("b", p.key(2), 4097)) })
	}},
	{"compaction", func(p *player, once bool) {
		p.slack = 300
		p.try("open", once, p.open)
		for i := range 9 {
			p.try("put", once, func() bool { return p.commit(p.put("a", p.key(i%4), int64(i)*500)) })
			if i%3 == 2 {
				p.try("drop", once, func() bool { return p.commit(p.drop("a", p.key(i%4))) })
			}
		}
		p.try("close", once, p.close)
		p.try("open", once, p.open)
		p.try("put", once, func() bool { return p.commit(p.put("a", p.key(50), 1)) })
	}},
	{"crashes", func(p *player, once bool) {
		p.slack = 2000
		p.try("open", once, p.open)
		for i := range 3 {
			p.try("put", once, func() bool { return p.commit(p.put("a", p.key(i), p.size())) })
			p.crash([]float64{0, 0.5, 1}[i%3])
			p.try("open", once, p.open)
			p.try("replace", once, func() bool { return p.commit(p.put("a", p.key(0), p.size()), p.drop("a", p.key(7))) })
		}
		p.try("close", once, p.close)
	}},
	{"repair", func(p *player, once bool) {
		p.repair = true
		p.try("open", once, p.open)
		for i := range 5 {
			p.try("put", once, func() bool { return p.commit(p.put("a", p.key(i), p.size())) })
		}
		p.close()
		p.ail()
		p.try("repair", once, p.open)
		p.try("put", once, func() bool { return p.commit(p.put("a", p.key(1), 9000)) })
		p.try("close", once, p.close)
		p.try("open", once, p.open)
	}},
	{"failed syncs", func(p *player, once bool) {
		p.try("open", once, p.open)
		p.try("put", once, func() bool { return p.commit(p.put("a", p.key(0), 20_000), p.put("a", p.key(1), 4096)) })
		p.trouble.Enable()
		p.commit(p.put("a", p.key(2), 20_000))
		p.trouble.Disable()
		p.try("elsewhere", once, func() bool { return p.commit(p.put("a", p.key(2), 20_000)) })
		p.try("replace", once, func() bool { return p.commit(p.put("a", p.key(0), 100)) })
		p.try("drop", once, func() bool { return p.commit(p.drop("a", p.key(1))) })
		p.try("anew", once, func() bool { return p.commit(p.put("b", p.key(1), 20_000), p.put("b", p.key(2), 4096)) })
		p.try("close", once, p.close)
		p.try("open", once, p.open)
		p.try("where it was", once, func() bool { return p.commit(p.put("a", p.key(1), 20_000)) })
	}},
	{"best", func(p *player, once bool) {
		p.slack = 2000
		rule := model.Retention{Last: 1, Best: model.Best{Count: 2, By: []string{"loss"}}}
		p.try("open", once, p.open)
		p.try("rule", once, func() bool { return p.commit(p.retain("run", rule)) })
		durables := map[version]bool{}
		for i := range 9 {
			p.try("put", once, func() bool { return p.commit(p.put("run", p.key(i), p.size())) })
			p.note("run", durables)
			p.try("drop", once, func() bool { return p.commit(p.prune("run")...) })
			p.keepsBest("run", durables, &rule)
			if i == 4 {
				p.crash(0.5)
				p.try("open", once, p.open)
				p.keepsBest("run", durables, &rule)
			}
		}
	}},
}

// note adds the durable versions of a history.
func (p *player) note(history string, durables map[version]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, v := range p.sure.rows {
		if at.history == history {
			durables[v] = true
		}
	}
}

// keepsBest verifies that of durable versions, of one key each, the latest and the best survive any crash now.
func (p *player) keepsBest(history string, durables map[version]bool, rule *model.Retention) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for v := range durables {
		newer, better := uint64(0), uint64(0)
		for other := range durables {
			if other.serial > v.serial {
				newer++
			}
			if other.loss() < v.loss() || other.loss() == v.loss() && other.serial < v.serial {
				better++
			}
		}
		if newer >= rule.Last && better >= rule.Best.Count {
			continue
		}
		for _, m := range p.allowed() {
			if !slices.Contains(slices.Collect(maps.Values(m.rows)), v) {
				p.wrong = errors.Join(p.wrong, fmt.Errorf("%v keeps the latest and the best of %v, and %v is not there", m, durables, v))
			}
		}
	}
}

// ail damages the catalog where it has acknowledged records. The readable rest is the expected content from then on.
func (p *player) ail() {
	p.mem = p.mem.Crash(p.r, 1) // puts all that is read on the medium, including bytes that were never synced
	names, _ := p.mem.List(p.at)
	for _, name := range names {
		info, err := p.mem.Stat(p.at + "/" + name)
		if err != nil || !strings.HasPrefix(name, "catalog-") || info.Size < 200 {
			continue
		}
		if err := flip(p.mem, p.at+"/"+name, info.Size/2*8); err != nil {
			panic(err)
		}
	}
	view, err := Read(p.options(p.mem))
	if err != nil {
		return // no catalog yet
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sure, p.may = shown(view.State()), nil
	if err := view.Close(); err != nil {
		panic(err)
	}
}
