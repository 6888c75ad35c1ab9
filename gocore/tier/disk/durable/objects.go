package durable

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/description"
	"velocpy/gocore/model"
	"velocpy/gocore/tier"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// Objects keep the objects of one history of a directory, at offsets that their user assigns. Each has a row in the catalog: a checkpoint of one region, whose
// key and serial are the object's ID. So the IDs are serials of the store, and nothing else is written to the history.
//
// A store's checkpoints do not go this way: their rows say more, and the engine places them (disk.Tier.Commit).
type Objects struct {
	bytes   segment.Objects
	dir     *Dir // nil: open for reading only
	history string

	mu       sync.Mutex
	all      map[uint64]*object
	unlanded map[*object]struct{} // committed objects whose rows have not landed, or have failed to
}

// object is one object of a history, under its mu.
type object struct {
	tier.Object
	of    *Objects
	state objectState
	done  chan struct{} // closed when the row has landed or failed; nil: it came from the catalog
	err   error         // why the row has failed
}

type objectState int

const (
	objectWritten objectState = iota // it has a sink
	objectCommitted
	objectDeleted // its drop has been handed over
)

// Objects returns the objects of a history. One such value at a time may be in use for it.
func (d *Dir) Objects(history string) (*Objects, error) { return d.objects(history, d.data, d) }

// Objects returns the objects of a history, as the directory had them when it was opened.
func (v *View) Objects(history string) (*Objects, error) { return v.objects(history, v.data, nil) }

func (r *records) objects(history string, space *segment.Space, dir *Dir) (*Objects, error) {
	o := &Objects{
		bytes: segment.Objects{Space: space}, dir: dir, history: history, all: map[uint64]*object{}, unlanded: map[*object]struct{}{},
	}
	r.o.Guard.Lock()
	defer r.o.Guard.Unlock()
	id, _ := r.state.History(history)
	var bad error
	r.state.Each(id, func(row catalog.Row) bool {
		off, _, err := r.Place(&row)
		if err == nil && (row.Key.IsText || uint64(row.Key.Number) != row.Serial || row.Content != catalog.Raw) {
			err = fmt.Errorf("%w: checkpoint %s of %q is no object", ErrDamaged, row.Key, history)
		}
		o.all[row.Serial] = &object{Object: tier.Object{ID: row.Serial, Offset: off, Bytes: row.Layout.Slot}, of: o, state: objectCommitted}
		bad = err
		return err == nil
	})
	return o, bad
}

// Capabilities implements tier.Objects.
func (o *Objects) Capabilities() tier.Capabilities {
	c := o.bytes.Capabilities()
	c.Durable, c.Shared, c.Listed, c.Conditional, c.Tracked = true, true, true, true, true
	return c
}

// Create implements tier.Objects.
func (o *Objects) Create(x tier.Object, wanted func() bool) (tier.Sink, error) {
	if o.dir == nil {
		return nil, fmt.Errorf("%s is open for reading only: %w", o.history, unix.EROFS)
	}
	if x.ID == 0 || x.ID > catalog.MostSerial {
		return nil, fmt.Errorf("an object with the ID %d: %w", x.ID, tier.ErrRange)
	}
	if _, err := o.bytes.Open(tier.Object{Offset: x.Offset, Bytes: segment.Block}); err != nil { // the row of an empty object takes a block too
		return nil, err
	}
	inner, err := o.bytes.Create(x, wanted)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all[x.ID] != nil {
		return nil, fmt.Errorf("object %d: %w", x.ID, tier.ErrExists)
	}
	added := &object{Object: x, of: o, done: make(chan struct{})}
	o.all[x.ID] = added
	next, _ := o.bytes.Space.Segments(x.Offset, x.Bytes)
	return &objectSink{Sink: inner, object: added, next: next}, nil
}

// Open implements tier.Objects.
func (o *Objects) Open(x tier.Object) (tier.Source, error) {
	o.mu.Lock()
	found := o.all[x.ID]
	o.mu.Unlock()
	if found == nil || found.Object != x || !found.opens() {
		return nil, absent(x)
	}
	inner, err := o.bytes.Open(x)
	if err != nil {
		return nil, err
	}
	return objectSource{inner, found}, nil
}

func absent(x tier.Object) error { return fmt.Errorf("object %d: %w", x.ID, tier.ErrAbsent) }

// opens tells whether an object can be read.
func (x *object) opens() bool {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	return x.state == objectCommitted
}

// Delete implements tier.Objects. It returns once the catalog has dropped the row: before that a crash would bring the object back, and its room may not be
// reused.
func (o *Objects) Delete(x tier.Object) error {
	if o.dir == nil {
		return fmt.Errorf("%s is open for reading only: %w", o.history, unix.EROFS)
	}
	o.mu.Lock()
	found := o.all[x.ID]
	if found == nil || found.state != objectCommitted {
		o.mu.Unlock()
		return nil
	}
	found.state = objectDeleted
	o.mu.Unlock()
	err := o.dir.await(&Change{History: o.history, Key: model.NumberKey(int64(x.ID)), Serial: x.ID, Drop: true})
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		found.state = objectCommitted
		return err
	}
	delete(o.all, x.ID)
	delete(o.unlanded, found)
	return nil
}

// Sync implements tier.Objects: it waits for the rows of the objects that were committed before.
func (o *Objects) Sync() error {
	o.mu.Lock()
	all := slices.SortedFunc(maps.Keys(o.unlanded), func(a, b *object) int { return cmp.Compare(a.ID, b.ID) })
	o.mu.Unlock()
	var errs []error
	for _, x := range all {
		select {
		case <-x.done:
		case <-o.dir.ended:
		}
		errs = append(errs, x.landed())
	}
	return errors.Join(errs...)
}

// landed is the error of an object that is not durable. One that has been deleted meanwhile needs no durability.
func (x *object) landed() error {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	_, waits := x.of.unlanded[x]
	switch {
	case !waits || x.state != objectCommitted:
		return nil
	case x.err != nil:
		return fmt.Errorf("object %d: %w", x.ID, x.err)
	}
	return ErrClosed
}

// List implements tier.Objects.
func (o *Objects) List(visit func(tier.Object) error) error {
	o.mu.Lock()
	var all []tier.Object
	for _, x := range o.all {
		if x.state == objectCommitted {
			all = append(all, x.Object)
		}
	}
	o.mu.Unlock()
	for _, x := range all {
		if err := visit(x); err != nil {
			return err
		}
	}
	return nil
}

// Landed implements Watcher: the row of an object has landed.
func (x *object) Landed(c *Change) {
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	if x.err = c.Err; c.Err == nil {
		delete(x.of.unlanded, x)
	}
	close(x.done)
}

// objectSource is an object that is read. It implements tier.Prover.
type objectSource struct {
	tier.Source
	object *object
}

// Read implements tier.Source.
func (s objectSource) Read(at int64, to []byte, arrived func(at, n int64)) error {
	if !s.object.opens() {
		return absent(s.object.Object)
	}
	return s.Source.Read(at, to, arrived)
}

// Holds implements tier.Prover.
func (s objectSource) Holds(at, n int64) error { return s.Source.(tier.Prover).Holds(at, n) }

// Proves implements tier.Prover.
func (s objectSource) Proves(at, n int64) error { return s.Source.(tier.Prover).Proves(at, n) }

// objectSink is an object that is written.
type objectSink struct {
	tier.Sink
	object *object
	next   int64 // the first segment that nothing of the object has been written to
	err    error // why a segment that was passed over has no file
}

// Write implements tier.Sink.
func (s *objectSink) Write(at int64, p []byte) error {
	if s.err != nil {
		return s.err
	}
	err := s.Sink.Write(at, p)
	if err != nil || len(p) == 0 {
		return err
	}
	first, end := s.object.of.bytes.Space.Segments(s.object.Offset+at, int64(len(p)))
	err = s.occupy(first)
	s.next = end
	return err
}

// occupy writes a block into each segment before another one that has nothing of the object: its row refers only to files that are there, with their heads.
func (s *objectSink) occupy(before int64) error {
	space := s.object.of.bytes.Space
	for ; s.next < before; s.next++ {
		from, _ := space.Range(s.next)
		if s.err = space.Write(max(from, s.object.Offset), make([]byte, segment.Block)); s.err != nil {
			return s.err
		}
	}
	return nil
}

// Commit implements tier.Sink: it hands the row over.
func (s *objectSink) Commit() error {
	x := s.object
	_, end := x.of.bytes.Space.Segments(x.Offset, x.Bytes)
	err := s.Sink.Commit()
	if err == nil {
		err = s.err
	}
	if err == nil {
		err = s.occupy(end)
	}
	if err != nil {
		s.forget()
		return err
	}
	x.of.mu.Lock()
	x.state = objectCommitted
	x.of.unlanded[x] = struct{}{}
	x.of.mu.Unlock()
	x.of.dir.Commit(&Change{History: x.of.history, Off: x.Offset, Watcher: x, Put: &catalog.Row{
		Key: model.NumberKey(int64(x.ID)), Serial: x.ID, Align: segment.Block, Layout: &catalog.Layout{Layout: description.Bytes(x.Bytes)},
	}})
	return nil
}

// Abort implements tier.Sink.
func (s *objectSink) Abort() error {
	err := s.Sink.Abort()
	s.forget()
	return err
}

// forget lets the ID be used again, unless the object was committed.
func (s *objectSink) forget() {
	x := s.object
	x.of.mu.Lock()
	defer x.of.mu.Unlock()
	if x.state == objectWritten && x.of.all[x.ID] == x {
		delete(x.of.all, x.ID)
	}
}
