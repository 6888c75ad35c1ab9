package workers

import (
	"errors"

	"velocpy/gocore/cache"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/transfer/path"
)

// lineage is the lineage of a history while a transfer has its turn in it.
type lineage struct {
	s       *Workers
	x       *engine.Transfer
	state   *cache.Lineage
	room    *regions.Room // the worker's
	draft   *object.Draft
	sources []model.Source // held for the draft
}

// Lineage waits for the turn of the transfer in the lineage of its history. The worker waits, too: a disk has work for one encoder alone most of the time.
func (p *planner) Lineage() path.Lineage {
	state := p.s.lineageOf(p.x)
	if state == nil {
		return nil
	}
	state.Turn.Lock()
	return &lineage{s: p.s, x: p.x, state: state, room: p.room}
}

// lineageOf is the lineage of the history of a transfer's checkpoint; nil: it has none. The history may get another one at any time.
func (s *Workers) lineageOf(x *engine.Transfer) *cache.Lineage {
	s.Lock()
	defer s.Unlock()
	if r := reduction(s.Cache, x); r != nil {
		return r.Lineage
	}
	return nil
}

// Draft implements path.Lineage. A checkpoint whose object was dropped meanwhile is no source: then another draft is made without it.
func (l *lineage) Draft(regions []dedup.Region) (*object.Draft, []model.Source, error) {
	l.resume()
	w := l.state.Writer
	gone, alone := l.look()
	w.Forget(gone...)
	w.Compact(alone)
	for {
		draft, err := l.draftBeside(regions)
		if err != nil {
			return nil, nil, err
		}
		sources, err := l.find(draft.Sources())
		if err != nil {
			w.Forget(draft.Number())
			return nil, nil, err
		}
		l.s.Lock()
		gone := l.s.Disk.Hold(l.state.ID, sources)
		l.s.Unlock()
		if len(gone) == 0 {
			l.draft, l.sources = draft, sources
			return draft, sources, nil
		}
		w.Forget(append(gone, draft.Number())...)
	}
}

// look returns the numbers of the objects that the disk has no longer, and forgets their places; and of those that it has for later checkpoints alone.
func (l *lineage) look() (gone, alone []uint32) {
	known := l.state.Writer.Known()
	l.s.Lock()
	defer l.s.Unlock()
	for _, number := range known {
		s, ok := l.state.Places[number]
		switch {
		case !ok || !l.s.Disk.HasObject(l.state.ID, &s):
			gone = append(gone, number)
		case l.s.Disk.Alone(&s):
			alone = append(alone, number)
		}
	}
	for number, s := range l.state.Places {
		if !l.s.Disk.HasObject(l.state.ID, &s) {
			delete(l.state.Places, number)
		}
	}
	return gone, alone
}

// errSource cannot happen: a draft refers to objects that Known lists alone.
var errSource = errors.New("a difference refers to an object that is not known")

func (l *lineage) find(numbers []uint32) ([]model.Source, error) {
	all := make([]model.Source, len(numbers))
	for i, number := range numbers {
		s, ok := l.state.Places[number]
		if !ok {
			return nil, errSource
		}
		all[i] = s
	}
	return all, nil
}

// ForgetSources implements path.Lineage.
func (l *lineage) ForgetSources() { l.state.Writer.Forget(l.draft.Sources()...) }

// Leave implements path.Lineage.
func (l *lineage) Leave(x *model.Difference) {
	defer l.state.Turn.Unlock()
	if l.draft == nil {
		return
	}
	l.s.Lock()
	defer l.s.Leave()
	if x == nil {
		l.state.Writer.Forget(l.draft.Number())
		l.s.Disk.LetGo(l.sources)
		return
	}
	l.state.Writer.Wrote(x)
	l.s.Disk.Wrote(l.x.ToOff, x)
	l.state.Places[x.Number] = model.Source{Number: x.Number, Data: x.Data, Meta: x.Meta, Offset: l.x.ToOff}
}
