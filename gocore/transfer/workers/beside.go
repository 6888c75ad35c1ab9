package workers

import (
	"velocpy/gocore/base/description"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/transfer/slots"
)

// A chunk with the digest of the chunk before it may have other bytes: digests can collide. While the host tier has the checkpoint before, the bytes themselves are compared.

// beside is the host tier's copy of a lineage's last checkpoint, while a draft is compared with it. The engine keeps the copy where it is. The lock guards the fields.
type beside struct {
	s       *Workers
	id      uint64 // of the record
	reading engine.Reading
	spans   map[string]model.Span // of the regions, in slot
	slot    []byte
	users   int  // goroutines that read the slot
	over    bool // no more may begin
	ended   bool // the reading has ended
}

// draftBeside makes a draft beside the bytes of the last checkpoint, if the host tier has them.
func (l *lineage) draftBeside(regions []dedup.Region) (*object.Draft, error) {
	var before dedup.Before
	l.s.Lock()
	b := l.s.beside(l.state.Last)
	l.s.Unlock()
	if b != nil {
		defer b.close()
		before = b.compare
	}
	draft, err := l.state.Writer.DraftAfter(before, regions)
	if err == nil {
		l.state.Last = l.x.Rec.ID
	}
	return draft, err
}

// beside begins to read the host tier's copy of a checkpoint, whose record has that ID; nil: there is none that may be read now. The lock is held.
func (s *Workers) beside(id uint64) *beside {
	r := s.Engine.Record(id)
	if id == 0 || r == nil || s.Host == nil || s.Closing {
		return nil
	}
	t := s.HostTier()
	x, ok := s.Engine.BeginReading(s.Now(), r, t)
	if !ok {
		return nil
	}
	b := &beside{s: s, id: id, reading: x, slot: slots.Slot(s.Cache, r, t), spans: map[string]model.Span{}}
	for i, name := range description.Names(&r.Version.Layout.Layout) {
		b.spans[name] = r.Version.Layout.Spans[i]
	}
	return b
}

// compare is a dedup.Before. It gives no bytes any more once a claim waits for the room of the copy, or the checkpoint is gone.
func (b *beside) compare(region string, at, n int, compare func(before []byte)) {
	if !b.enter() {
		compare(nil)
		return
	}
	defer b.leave()
	span := b.spans[region]
	from := span.Offset + int64(at)
	compare(b.slot[from : from+int64(n) : from+int64(n)])
}

func (b *beside) enter() bool {
	b.s.Lock()
	defer b.s.Unlock()
	if b.over = b.over || b.s.Closing || b.s.Engine.IsInTheWay(b.reading); b.over {
		b.end()
		return false
	}
	b.users++
	return true
}

func (b *beside) leave() {
	b.s.Lock()
	defer b.s.Unlock()
	b.users--
	b.end()
}

// close ends the reading if it has not ended.
func (b *beside) close() {
	b.s.Lock()
	defer b.s.Unlock()
	b.over = true
	b.end()
}

// end ends the reading when it is over and nobody reads any more. The lock is held.
func (b *beside) end() {
	if b.over && b.users == 0 && !b.ended {
		b.ended = true
		b.s.Engine.EndReading(b.s.Now(), b.reading)
		b.s.Notify()
	}
}
