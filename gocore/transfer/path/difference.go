package path

import (
	"errors"
	"fmt"
	"sync"
	"time"

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
	if p.encoder.lineage == nil {
		return p.run()
	}
	err := errUnfinished
	defer func() {
		if err != nil {
			p.result.Staged.Difference = nil
		}
		p.encoder.lineage.Leave(p.result.Staged.Difference)
	}()
	err = p.run()
	return err
}

// errUnfinished is the error of a run that has panicked.
var errUnfinished = errors.New("the transfer has not ended")

// writeDifference writes the bytes that no earlier object of the lineage has.
func (enc *encoder) writeDifference() error {
	l, slot, began := enc.version.Layout, enc.source.Bytes(), time.Now()
	all := make([]dedup.Region, len(l.Spans))
	for i, name := range description.Names(&l.Layout) {
		all[i] = dedup.Region{Name: name, Bytes: slot[l.Spans[i].Offset:l.Spans[i].End()]}
	}
	draft, sources, err := enc.lineage.Draft(all)
	if err != nil {
		return err
	}
	choices := enc.plan.Choices
	if choices == nil {
		choices = plainChoices(enc.version.Layout)
	}
	o, w, s := enc.options(), timedWriter{sink: enc.sink}, &enc.result.Staged
	if of := draft.Reference(sources); of != nil {
		o.Reference, err = enc.reference(of, &sources[0])
	}
	if err == nil {
		s.First, s.Choices = draft.Stored(), choices
		s.Difference, err = draft.Write(sources, choices, enc.x.Writes(), w.write, o)
		s.Waited = w.waited(began)
	}
	if damage := new(object.Damage); errors.As(err, &damage) { // of the reference: nothing else is read. The plain bytes move, which need nothing of it
		enc.lineage.ForgetSources()
		return fmt.Errorf("%w without a damaged reference: %w", regions.ErrLarge, damage)
	}
	return err
}

// reference opens the checkpoint of a source in the tier of the sink.
func (enc *encoder) reference(of *model.Difference, s *model.Source) (regions.Reference, error) {
	l := enc.version.Layout
	opened, err := enc.c.Objects(enc.x.To).Open(tier.Object{Offset: s.Offset, Bytes: s.Bytes()})
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
func (dec *decoder) decodeDifference(to []byte) error {
	l, d := dec.version.Layout, dec.version.Difference
	r, err := object.Open(d, description.Names(&l.Layout), l.Spans, dec.objectsOf(d, dec.readOwn).read)
	if err == nil {
		if dec.o.Copies != nil && dec.verifies() {
			r.Elsewhere, r.Unreadable = func(lost *object.Losses) { dec.mend(lost) }, vfs.Unreadable
		}
		err = r.Decode(dec.wanted(), to, dec.arrived, dec.options())
	}
	if damage := new(object.Damage); errors.As(err, &damage) {
		dec.doubt(damage.Source)
		return dec.damaged(damage)
	}
	return err
}

func (dec *decoder) damaged(damage *object.Damage) error {
	err := status.Wrap(status.Corrupt, damage, "the bytes read are not those that were captured").AtTier(dec.c.Tiers[dec.x.From])
	if damage.Region >= 0 {
		return err.AtRegion(damage.Region)
	}
	return err
}

// lineageObjects are the objects of a difference in the tier that the transfer reads. The copy there holds the sources, and that copy is held meanwhile.
type lineageObjects struct {
	dec  *decoder
	own  regions.Source
	of   *model.Difference
	mu   sync.Mutex
	open []tier.Source // the sources; nil: not opened yet
}

// objectsOf are the objects of a difference. own reads its own one.
func (dec *decoder) objectsOf(d *model.Difference, own regions.Source) *lineageObjects {
	return &lineageObjects{dec: dec, own: own, of: d, open: make([]tier.Source, len(d.Sources))}
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
	o.dec.read.Add(int64(len(room)))
	return from.Read(at, room, func(int64, int64) {})
}

func (o *lineageObjects) opened(source int) (tier.Source, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[source] == nil {
		s := &o.of.Sources[source]
		opened, err := o.dec.openObject(s.Offset, s.Bytes())
		if err != nil {
			return nil, err
		}
		o.open[source] = opened
	}
	return o.open[source], nil
}

// openObject opens another object of the tier that the transfer reads.
func (dec *decoder) openObject(at, bytes int64) (tier.Source, error) {
	opened, err := dec.c.Objects(dec.x.From).Open(tier.Object{Offset: at, Bytes: bytes})
	if err != nil {
		return nil, err
	}
	return &objectSource{opened, dec.Path}, nil
}
