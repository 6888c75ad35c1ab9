// Package archive brings the checkpoints of the ranks of a run into one store, in a given number of files (Gossman et al., "Scalable I/O aggregation for asynchronous
// multi-level checkpointing", section 4).
//
// An archive is a durable store with two kinds of histories. "rank R/H" has the parts of rank R: the checkpoints of its history H, as they lie in the rank's own store,
// encoded or as differences. H has a checkpoint for each key that is complete: the numbers of the ranks that have a part. The parts of a key and that checkpoint are
// committed by one batch of the catalog, so a key is there as a whole or not at all, and one that is replaced is there in its old or its new version.
//
// Each data file is one of the files that the caller has asked for: its segment is longer than any file of an archive will be. A file is appended to. Room
// behind the last checkpoint that the catalog refers to is written again by the next push: a push that has failed may have left bytes there.
package archive

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
)

// segmentBytes is the length of the segments of an archive. No file of one becomes longer.
const segmentBytes = 16 << 40

// MostFiles is the largest number of files of an archive: offsets in the space of the store have 62 bits.
const MostFiles = 1 << 17

// DefaultWriters is the default number of goroutines that copy. Each has a buffer of copyBytes.
const DefaultWriters = 8

var (
	// ErrFull: a file of the archive has no room any more.
	ErrFull = errors.New("a file of an archive has at most 16 TiB")
	// ErrName: a history of a rank's store has the name of a history of parts: the store is an archive itself.
	ErrName = errors.New("the name is one that an archive gives to the parts of a rank")
	// ErrLongName: the name of a history has no room for the number of a rank before it.
	ErrLongName = errors.New("with the number of its rank before it, the name of the history is too long")
	// ErrNoArchive: the destination is a store that no push has made.
	ErrNoArchive = errors.New("the store is no archive: its data files are short")
	// ErrFiles: the number of files is out of range.
	ErrFiles = fmt.Errorf("an archive has 1 to %d files", MostFiles)
)

// RankError is an error of a rank's store.
type RankError struct {
	Rank int
	Dir  string
	Err  error
}

func (e *RankError) Error() string { return fmt.Sprintf("rank %d: %v", e.Rank, e.Err) }

func (e *RankError) Unwrap() error { return e.Err }

// Source is the store of a rank.
type Source struct {
	Rank     int
	Store    durable.Options
	Metadata []byte // instead of Store.FS: what Metadata has read of a store on another node; it must stay as it is
}

// Options configure a push.
type Options struct {
	Files     int      // that the checkpoints are appended to; 0: those that the archive has, or one
	Writers   int      // 0: DefaultWriters
	Leaders   int      // by plans: the most ranks that write into one file; 0: as many as let every node lead
	Stripe    int64    // what one node writes begins at a multiple of it in a file; 0: aggregation.Stripe
	Partial   bool     // keys that not all ranks have are brought too
	Histories []string // that are brought; nil: all

	Paces Paces // by plans: how fast the nodes have written for earlier pushes

	packBytes int64 // in a bucket: how many are enough for a pack; 0: the constant
}

// Paces are how fast nodes have written.
type Paces = aggregation.Paces

// Done says what a push has done.
type Done struct {
	Keys       int   // that the archive has now and had not before, in this version
	Parts      int   // that were copied for them
	Bytes      int64 // of these parts in the archive, objects counted once
	Known      int   // keys that were there already
	Incomplete int   // keys that not all ranks have, left out
	Changed    int   // keys that a rank replaced or dropped before they were copied, left out
	Damaged    []Damage
	Omitted    []Omission // Incomplete, Changed, Damaged and Held ones, in any order
	Files      int        // of the archive that have been appended to; packs, of one in a bucket
	Requests   int64      // to the object store, of an archive in a bucket
	Sent       int64      // bytes of their bodies
	Received   int64      // bytes of the replies' bodies
	Left       int        // keys that are still to be looked at
}

// Damage is a part whose bytes are not those of its checksums. Its key was left out.
type Damage struct {
	Rank    int
	History string
	Key     model.Key
}

// Name is a key of a history.
type Name struct {
	History string
	Key     model.Key
}

// Omission is a key that a push has left out.
type Omission struct {
	Name
	Why Why
}

// Why a key was left out.
type Why string

// The reasons.
const (
	Incomplete Why = "incomplete" // not all ranks have it
	Changed    Why = "changed"    // a rank replaced or dropped it before it was copied
	Damaged    Why = "damaged"    // a part of it has bytes that are not those of its checksums
	Held       Why = "held"       // Hold was called for it
)

// Push brings the checkpoints that an archive lacks from the stores of ranks, also while processes write to these. Methods must not overlap.
type Push struct {
	o      Options
	ranks  []*rank
	dir    string
	to     *durable.Dir // nil: the archive is in a bucket
	bucket *bucketPush  // nil: the archive is a directory
	there  inventory    // what the archive has
	queue  []*task
	under  *planned         // the plan that is being carried out; nil: none is
	ends   []int64          // by file: where its free room begins, in the space
	rooms  map[object]int64 // where the objects lie that the archive has
	owned  map[int64]bool   // rooms that are the own ones of rows, by their offsets: no other row may have one as its own
	parts  map[string][]int // by history: the numbers of the ranks that have had a part of it, ascending
	wrote  map[int]bool     // files that have been appended to

	reserved reservation
	avoided  []int64 // ends, by file, of the room that earlier pushes have planned and not given up
	planning bool    // this push has recorded room
	done     Done

	guard  sync.Mutex
	landed chan error
}

// inventory is what an archive has, in a directory or in a bucket.
type inventory interface {
	State() *catalog.State
	Rooms(row *catalog.Row) ([]durable.Room, error)
}

// object names an object of a lineage. Stores may have one lineage, and other objects under one number: if one is a copy of the other, and both went on. So
// the objects of each rank count for themselves.
type object struct {
	rank int
	durable.LineageObject
}

type rank struct {
	number int
	from   *durable.View
}

// task is a key that may have to be brought.
type task struct {
	history string
	key     model.Key
	order   uint64 // serial in the store of the lowest rank that has the key
	ranks   []int  // in the order of Push.ranks: those that have the key
	tries   int
	parts   []*part
	stale   []int // numbers of ranks of whose parts the archive has one, and the key none any more
}

// NewPush opens the stores of the ranks for reading, and the archive, which it makes if there is none.
func NewPush(from []Source, to durable.Options, o Options) (*Push, error) {
	return newPush(from, to.Dir, o, func(p *Push) (err error) {
		if err := recognize(to); err != nil {
			return err
		}
		to.Capacity, to.SegmentBytes, to.Guard, to.Land = 0, segmentBytes, &p.guard, p.land
		if p.to, err = durable.Open(to); err != nil {
			return err
		}
		p.there = p.to
		p.reserved = reservation{fs: to.FS, dir: to.Dir}
		return p.survey()
	})
}

// newPush opens the stores of the ranks, lists their keys, and then opens the archive.
func newPush(from []Source, place string, o Options, open func(*Push) error) (_ *Push, err error) {
	p := &Push{o: o, dir: place, wrote: map[int]bool{}, landed: make(chan error)}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if o.Files < 0 || o.Files > MostFiles {
		return nil, ErrFiles
	}
	if err := p.openAll(from); err != nil {
		return nil, err
	}
	if err := p.gather(); err != nil {
		return nil, err
	}
	return p, open(p)
}

// openAll opens the stores of the ranks, as many at once as there are writers: so many catalogs are decoded at a time. If several cannot be opened, the error is that of
// the lowest rank.
func (p *Push) openAll(from []Source) error {
	from = slices.SortedStableFunc(slices.Values(from), func(a, b Source) int { return cmp.Compare(a.Rank, b.Rank) })
	opened, errs := make([]*durable.View, len(from)), make([]error, len(from))
	err := p.o.workers(len(from), func(mine iter.Seq[int]) error {
		for i := range mine {
			if opened[i], errs[i] = from[i].open(); errs[i] != nil {
				return errs[i] // numbers are given out in their order, so every lower rank is opened all the same
			}
		}
		return nil
	})
	for i, view := range opened {
		if view != nil {
			p.ranks = append(p.ranks, &rank{from[i].Rank, view})
		}
	}
	for i, err := range errs {
		if err != nil {
			return &RankError{from[i].Rank, from[i].Store.Dir, err}
		}
	}
	return err
}

// open opens the store for reading.
func (s *Source) open() (_ *durable.View, err error) {
	if s.Metadata != nil {
		if s.Store.FS, err = vfs.Replay(s.Metadata); err != nil {
			return nil, err
		}
	}
	view, err := durable.Read(s.Store)
	if err != nil {
		return nil, err
	}
	if err := view.Fit(); err != nil {
		return nil, errors.Join(err, view.Close())
	}
	return view, nil
}

// recognize refuses a store that is no archive, and changes nothing in it. A directory without a store becomes an archive.
func recognize(to durable.Options) (err error) {
	view, err := durable.Read(to)
	if errors.Is(err, durable.ErrNoStore) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	if view.SegmentBytes() != segmentBytes {
		return fmt.Errorf("%s: %w", to.Dir, ErrNoArchive)
	}
	return err
}

// survey looks at what the archive has, and where its files end.
func (p *Push) survey() error {
	for _, end := range p.to.Occupied() {
		file := int((end - 1) / segmentBytes)
		for len(p.ends) <= file {
			p.ends = append(p.ends, int64(len(p.ends))*segmentBytes)
		}
		p.ends[file] = max(p.ends[file], end)
	}
	files := cmp.Or(p.o.Files, len(p.ends), 1)
	for len(p.ends) < files {
		p.ends = append(p.ends, int64(len(p.ends))*segmentBytes)
	}
	p.ends = p.ends[:files]
	if err := p.avoid(); err != nil {
		return err
	}
	p.to.Space().Grow(int64(files) * segmentBytes)
	return p.know()
}

// know lists the parts that the archive has, and its objects.
func (p *Push) know() (bad error) {
	p.rooms, p.owned, p.parts = map[object]int64{}, map[int64]bool{}, map[string][]int{}
	for _, h := range p.there.State().Histories() {
		if rank, of, ok := ParsePartName(h.Name); ok {
			p.addPart(of, rank)
		}
	}
	p.there.State().EachDifference(func(row catalog.Row) bool {
		var rooms []durable.Room
		name, _ := p.there.State().HistoryName(row.History)
		of, _, isPart := ParsePartName(name)
		if rooms, bad = p.there.Rooms(&row); bad == nil {
			p.owned[rooms[0].From] = true
			for _, r := range rooms {
				if isPart {
					p.rooms[object{of, r.Object}] = r.From
				}
			}
		}
		return bad == nil
	})
	return bad
}

// addPart notes that the archive has a history of a rank's parts.
func (p *Push) addPart(history string, rank int) {
	all := p.parts[history]
	if at, has := slices.BinarySearch(all, rank); !has {
		p.parts[history] = slices.Insert(all, at, rank)
	}
}

// gather lists the keys of the ranks, in the order in which they were captured.
func (p *Push) gather() error {
	all := map[Name]*task{}
	for i, r := range p.ranks {
		state := r.from.State()
		for _, h := range state.Histories() {
			if _, _, ok := ParsePartName(h.Name); ok {
				return fmt.Errorf("rank %d, history %.80q: %w", r.number, h.Name, ErrName)
			}
			if len(PartName(r.number, h.Name)) > catalog.MostName {
				return fmt.Errorf("rank %d, history %.80q: %w", r.number, h.Name, ErrLongName)
			}
			if p.o.Histories != nil && !slices.Contains(p.o.Histories, h.Name) {
				continue
			}
			state.EachKey(h.ID, func(key model.Key, serial uint64) bool {
				at := Name{h.Name, key}
				if all[at] == nil {
					all[at] = &task{history: h.Name, key: key, order: serial}
				}
				all[at].ranks = append(all[at].ranks, i)
				return true
			})
		}
	}
	for _, t := range all {
		if len(t.ranks) < len(p.ranks) && !p.o.Partial {
			p.done.Incomplete++
			p.omit(t, Incomplete)
			continue
		}
		p.queue = append(p.queue, t)
	}
	slices.SortFunc(p.queue, func(a, b *task) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.history, b.history), compareKeys(a.key, b.key))
	})
	return nil
}

func compareKeys(a, b model.Key) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Text, b.Text))
}

// Dir is the directory of the archive.
func (p *Push) Dir() string { return p.dir }

// Step continues until enough returns true or everything is done.
func (p *Push) Step(enough func() bool) (done bool, err error) {
	for len(p.queue) > 0 && !enough() {
		if err := p.bring(); err != nil {
			return false, err
		}
	}
	return len(p.queue) == 0, nil
}

// Done returns what has been done so far.
func (p *Push) Done() Done {
	d := p.done
	d.Files, d.Left = len(p.wrote), len(p.queue)
	if p.bucket != nil {
		c := p.bucket.at.Costs().Add(p.bucket.elsewhere)
		d.Requests, d.Sent, d.Received = c.Requests, c.Sent, c.Received
	}
	return d
}

func (p *Push) omit(t *task, why Why) {
	p.done.Omitted = append(p.done.Omitted, Omission{Name{t.history, t.key}, why})
}

// Hold leaves keys out. It is called before anything is brought.
func (p *Push) Hold(names []Name) {
	held := map[Name]bool{}
	for _, name := range names {
		held[name] = true
	}
	p.queue = slices.DeleteFunc(p.queue, func(t *task) bool {
		if !held[Name{t.history, t.key}] {
			return false
		}
		p.omit(t, Held)
		return true
	})
}

// bring brings the next keys: it copies their parts, verifies them, and commits each key.
func (p *Push) bring() error {
	batch, err := p.next(1)
	if err != nil {
		return err
	}
	if p.bucket != nil {
		return p.bucket.upload(batch)
	}
	if err := p.place(batch, nil); err != nil {
		return err
	}
	if err := p.copyAll(batch); err != nil {
		return err
	}
	if batch, err = p.confirmed(batch); err != nil {
		return err
	}
	return p.commit(batch)
}

func (p *Push) land(group []*durable.Change, _ []int64) {
	var first error // changes that go together fail by one error
	p.guard.Lock()
	for _, c := range group {
		p.to.Apply(c)
		if first == nil {
			first = c.Err
		}
	}
	p.guard.Unlock()
	p.landed <- first
}

// await hands changes over, and waits until they have landed.
func (p *Push) await(changes []*durable.Change) error {
	p.to.Commit(changes...)
	select {
	case err := <-p.landed:
		return err
	case <-p.to.Ended(): // the committing goroutine has panicked
		return safego.ErrPoisoned
	}
}

// Close closes the archive and the stores. What has been committed stays.
func (p *Push) Close() error {
	var errs []error
	if p.to != nil {
		errs = append(errs, p.release(), p.to.Close())
	}
	if p.bucket != nil {
		errs = append(errs, p.bucket.close())
	}
	for _, r := range p.ranks {
		errs = append(errs, r.from.Close())
	}
	return errors.Join(errs...)
}
