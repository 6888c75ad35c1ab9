package path

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/atomic"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier"
)

// Lineage is the lineage to which one transfer adds its checkpoint. No lock is held.
type Lineage interface {
	// Draft de-duplicates the checkpoint, and holds the sources that it returns.
	Draft(regions []dedup.Region) (*object.Draft, []model.Source, error)
	// ForgetSources makes no later checkpoint refer to the sources of the draft: they are damaged.
	ForgetSources()
	// Leave ends the use. x is the difference that has been written, or nil: then the sources are let go.
	Leave(x *model.Difference)
}

// runDifference is run. A lineage is left when the object that the transfer writes has been committed, or given up.
func (p *Path) runDifference() error {
	if p.lineage == nil {
		return p.run()
	}
	err := errUnfinished
	defer func() {
		if err != nil {
			p.result.Staged.Difference = nil
		}
		p.lineage.Leave(p.result.Staged.Difference)
	}()
	err = p.run()
	return err
}

// errUnfinished is the error of a run that has panicked.
var errUnfinished = errors.New("the transfer has not ended")

// writeDifference writes the bytes that no earlier object of the lineage has.
func (p *Path) writeDifference() error {
	l, slot, began := p.version.Layout, p.source.Bytes(), time.Now()
	all := make([]dedup.Region, len(l.Spans))
	for i, name := range description.Names(&l.Layout) {
		all[i] = dedup.Region{Name: name, Bytes: slot[l.Spans[i].Offset:l.Spans[i].End()]}
	}
	draft, sources, err := p.lineage.Draft(all)
	if err != nil {
		return err
	}
	choices := p.plan.Choices
	if choices == nil {
		choices = p.plainChoices()
	}
	o, w, s := p.options(), timedWriter{sink: p.sink}, &p.result.Staged
	if of := draft.Reference(sources); of != nil {
		o.Reference, err = p.reference(of, &sources[0])
	}
	if err == nil {
		s.First, s.Choices = draft.Stored(), choices
		s.Difference, err = draft.Write(sources, choices, p.x.Writes(), w.write, o)
		s.Waited = w.waited(began)
	}
	if damage := new(object.Damage); errors.As(err, &damage) { // of the reference: nothing else is read. The plain bytes move, which need nothing of it
		p.lineage.ForgetSources()
		return fmt.Errorf("%w without a damaged reference: %w", regions.ErrLarge, damage)
	}
	return err
}

// reference opens the checkpoint of a source in the tier of the sink.
func (p *Path) reference(of *model.Difference, s *model.Source) (regions.Reference, error) {
	l := p.version.Layout
	opened, err := p.c.Objects(p.x.To).Open(tier.Object{Offset: s.Offset, Bytes: s.Bytes()})
	if err != nil {
		return nil, err
	}
	r, err := object.Open(of, description.Names(&l.Layout), l.Spans, func(_ int, at int64, room []byte) error {
		if err := opened.Read(at, room, func(int64, int64) {}); err != nil { // the checkpoint can be written without it
			return &object.Damage{Region: -1, Err: err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.Reference, nil
}

// decodeDifference brings up the bytes from the objects that have them.
func (p *Path) decodeDifference(own regions.Source, read *atomic.Int64, to []byte) error {
	l, d := p.version.Layout, p.version.Difference
	r, err := object.Open(d, description.Names(&l.Layout), l.Spans, p.objectsOf(d, own, read).read)
	if err == nil {
		if p.o.Copies != nil && p.verifies() {
			r.Elsewhere, r.Unreadable = func(lost *object.Losses) { p.mend(lost, read) }, vfs.Unreadable
		}
		err = r.Decode(p.wanted(), to, p.arrived, p.options())
	}
	if damage := new(object.Damage); errors.As(err, &damage) {
		p.doubt(damage.Source)
		return p.damaged(damage)
	}
	return err
}

func (p *Path) damaged(damage *object.Damage) error {
	err := status.Wrap(status.Corrupt, damage, "the bytes read are not those that were captured").AtTier(p.c.Tiers[p.x.From])
	if damage.Region >= 0 {
		return err.AtRegion(damage.Region)
	}
	return err
}

// lineageObjects are the objects of a difference in the tier that the transfer reads. The copy there holds the sources, and that copy is held meanwhile.
type lineageObjects struct {
	p      *Path
	own    regions.Source
	others *atomic.Int64 // bytes that were read of the sources
	of     *model.Difference
	mu     sync.Mutex
	open   []tier.Source // the sources; nil: not opened yet
}

// objectsOf are the objects of a difference. own reads its own one, and others counts the bytes that are read of its sources.
func (p *Path) objectsOf(d *model.Difference, own regions.Source, others *atomic.Int64) *lineageObjects {
	return &lineageObjects{p: p, own: own, others: others, of: d, open: make([]tier.Source, len(d.Sources))}
}

// read implements object.Read.
func (o *lineageObjects) read(source int, at int64, room []byte) error {
	if source == object.Own {
		return o.own(at, room)
	}
	from, err := o.opened(source)
	if err != nil {
		return err
	}
	o.others.Add(int64(len(room)))
	return from.Read(at, room, func(int64, int64) {})
}

func (o *lineageObjects) opened(source int) (tier.Source, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[source] == nil {
		s := &o.of.Sources[source]
		opened, err := o.p.openObject(s.Offset, s.Bytes())
		if err != nil {
			return nil, err
		}
		o.open[source] = opened
	}
	return o.open[source], nil
}

// openObject opens another object of the tier that the transfer reads.
func (p *Path) openObject(at, bytes int64) (tier.Source, error) {
	opened, err := p.c.Objects(p.x.From).Open(tier.Object{Offset: at, Bytes: bytes})
	if err != nil {
		return nil, err
	}
	return &objectSource{opened, p}, nil
}
