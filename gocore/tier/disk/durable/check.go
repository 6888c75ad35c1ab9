package durable

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"go.uber.org/atomic"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// Scope says of which checkpoints the bytes are read and compared with their checksums. The zero value: of none.
type Scope struct {
	Data  bool    // of all
	Part  uint64  // with Parts: of those whose serial, divided by Parts, leaves Part
	Parts uint64  // 0: not asked for
	Share float64 // of this share of them, chosen at random; 0: not asked for
	Seed  uint64  // of the random choice
}

// ErrScope: no checkpoints can be chosen so.
var ErrScope = errors.New("not a choice of checkpoints")

func (s *Scope) check() error {
	switch asked := s.Data; {
	case asked && (s.Parts > 0 || s.Share != 0), s.Parts > 0 && s.Share != 0:
		return fmt.Errorf("%w: all, a part and a share exclude each other", ErrScope)
	case s.Parts > 0 && s.Part >= s.Parts || s.Parts == 0 && s.Part > 0:
		return fmt.Errorf("%w: part %d of %d", ErrScope, s.Part, s.Parts)
	case !(s.Share >= 0 && s.Share <= 1):
		return fmt.Errorf("%w: a share of %g", ErrScope, s.Share)
	}
	return nil
}

// Summary is what a check has found. Faults are in the order of their files and offsets.
type Summary struct {
	Checkpoints int   // that there are
	Bytes       int64 // of their regions
	Chosen      int   // of which the bytes are read
	ChosenBytes int64
	Read        int64 // bytes read so far
	Unsummed    int   // chosen ones that have no checksums: they can be read, and that is all that is known
	Unknown     int   // of contents that are of later versions: not looked at
	Superseded  int   // that were dropped or replaced while the check ran, and what was found there means nothing
	Damaged     int   // that have faults
	Torn        int64 // bytes at the catalog's end of what was not acknowledged: no damage
	Unused      []Unused
	Faults      []Fault
}

// Unused is a data file in which nothing lies that counts: no damage, and removed when the store is opened or collected.
type Unused struct {
	File  string
	Bytes int64
}

// Check looks at a store for damage, and changes nothing. Beside a writer it finds no more damage than there is: what it takes for damaged is looked up in a
// fresh catalog before it is called so.
type Check struct {
	v       *View
	files   map[int64]int64  // lengths of what lies in the data files, by segment; those that belong elsewhere are left out
	heads   map[uint64]error // data files whose heads are not right
	foreign map[int64]bool   // segments in the place of whose files there are others
	ends    int64            // of the space: no data file reaches further
	rows    []chosen         // by place
	sum     Summary

	undescribed []Fault
	incomplete  map[uint64]int // indexes of data files that lack rows

	mu    sync.Mutex // guards what follows, and the View's State
	next  int        // row
	cut   cutter
	found []suspicion
	read  atomic.Int64
	ended bool
}

// chosen is a row that is looked at.
type chosen struct {
	history uint32
	key     model.Key
	serial  uint64
	from    int64 // in the space
	bytes   int64 // of its regions
	read    bool
}

// Check begins one: it looks at everything but the bytes of checkpoints, which Step reads. It takes some 100 bytes of memory for each checkpoint.
func (v *View) Check(scope Scope) (*Check, error) {
	if err := scope.check(); err != nil {
		return nil, err
	}
	c := &Check{v: v}
	if err := c.list(); err != nil {
		return nil, err
	}
	c.choose(scope)
	return c, nil
}

// list finds the rows and the data files that there are.
func (c *Check) list() (err error) {
	if err := c.listFiles(c.v.contents); err != nil {
		return err
	}
	if c.incomplete, err = c.v.incomplete(c.v.data, c.files, c.v.settled()); err != nil {
		return err
	}
	c.sum.Torn = c.v.log.Torn
	for _, number := range slices.Sorted(maps.Keys(c.files)) {
		c.ends = max(c.ends, number*c.v.identity.segment+min(c.files[number], c.v.identity.segment))
		if !c.v.used(uint64(number)+1) && c.v.state.Unreadable() == 0 {
			c.sum.Unused = append(c.sum.Unused, Unused{segment.FileName(uint64(number) + 1), c.files[number] + c.v.identity.front()})
		}
	}
	described := describing(&c.v.o)
	for _, h := range c.v.state.Histories() {
		c.v.state.Each(h.ID, func(row catalog.Row) bool {
			c.sum.Checkpoints++
			if !row.Readable() {
				c.sum.Unknown++
				return true
			}
			if why := described.wrong(&row); why != nil {
				c.undescribed = append(c.undescribed, Fault{
					Kind: Description, Why: why.Error(), Row: &Place{History: h.Name, Key: row.Key, Serial: row.Serial},
				})
			}
			r, _ := c.v.identity.place(row.Extents) // the survey has seen to it that there is one
			x := chosen{history: h.ID, key: row.Key, serial: row.Serial, from: r.from}
			for _, s := range row.Layout.Spans {
				x.bytes += s.Bytes
			}
			c.rows = append(c.rows, x)
			c.sum.Bytes += x.bytes
			return true
		})
	}
	slices.SortFunc(c.rows, func(a, b chosen) int { return cmp.Compare(a.from, b.from) })
	return nil
}

// listFiles finds the data files, those that belong elsewhere, and those whose heads are damaged.
func (c *Check) listFiles(at *contents) (err error) {
	if c.files, err = at.lengths(); err != nil {
		return err
	}
	if c.heads, err = at.heads(); err != nil {
		return err
	}
	c.foreign = map[int64]bool{}
	for number, why := range c.heads {
		if errors.Is(why, segment.ErrForeign) {
			c.foreign[int64(number)-1] = true
			delete(c.files, int64(number)-1)
		}
	}
	return nil
}

// lengths are those of the data files, without their heads.
func (c *contents) lengths() (map[int64]int64, error) {
	names, err := c.o.FS.List(c.o.Dir)
	if err != nil {
		return nil, err
	}
	all := map[int64]int64{}
	for _, name := range names {
		number, ok := segment.FileNumber(name)
		if !ok || number-1 > uint64(math.MaxInt64/2/c.identity.segment) {
			continue
		}
		if info, err := c.o.FS.Stat(c.o.path(name)); err == nil && !info.Dir { // one that has gone meanwhile is not there
			all[int64(number)-1] = max(info.Size-c.identity.front(), 0)
		}
	}
	return all, nil
}

// choose says which rows are read.
func (c *Check) choose(s Scope) {
	switch {
	case s.Data:
		for i := range c.rows {
			c.rows[i].read = true
		}
	case s.Parts > 0:
		for i := range c.rows {
			c.rows[i].read = c.rows[i].serial%s.Parts == s.Part
		}
	case s.Share > 0:
		many := int(math.Ceil(s.Share * float64(len(c.rows))))
		for _, i := range rand.New(rand.NewPCG(s.Seed, 0)).Perm(len(c.rows))[:many] {
			c.rows[i].read = true
		}
	}
	for i := range c.rows {
		if c.rows[i].read {
			c.sum.Chosen++
			c.sum.ChosenBytes += c.rows[i].bytes
		}
	}
}

// mostReaders is how many read at once: it keeps a fast disk busy, and bounds the memory.
const mostReaders = 8

// Step goes on until enough says so, which any goroutine may ask, or all is done; then Summary says what was found. A piece of at most 64 MiB that was
// begun is ended, and a region that has a checksum but no hashes of its leaves. One call at a time.
func (c *Check) Step(enough func() bool) (done bool, err error) {
	if c.ended {
		return true, nil
	}
	var busy sync.WaitGroup
	var failed error
	for range min(mostReaders, max(2, runtime.GOMAXPROCS(0))) {
		busy.Add(1)
		safego.Go("check", func() {
			defer busy.Done()
			if err := c.reader(enough); err != nil {
				c.mu.Lock()
				defer c.mu.Unlock()
				failed = errors.Join(failed, err)
			}
		})
	}
	busy.Wait()
	if _, bad := safego.Poisoned(); bad {
		return false, safego.ErrPoisoned
	}
	if failed != nil {
		return false, failed
	}
	c.mu.Lock()
	done = c.next == len(c.rows) && c.cut.row == nil
	c.mu.Unlock()
	if done {
		failed = c.settle()
		c.ended = failed == nil
	}
	return done, failed
}

// reader takes pieces until enough says so or none is left.
func (c *Check) reader(enough func() bool) error {
	w, err := newWindow(c.v.data)
	if err != nil {
		return err
	}
	var some []piece
	for !enough() {
		if some = c.takeSome(some[:0]); len(some) == 0 {
			break
		}
		w.begin(some[len(some)-1].reaches())
		for _, p := range some {
			c.report(c.examine(w, p))
		}
	}
	return w.close()
}

func (c *Check) report(found []suspicion) {
	if len(found) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = append(c.found, found...)
}

// Summary is what has been found; of faults, only when Step has said that all is done.
func (c *Check) Summary() Summary {
	s := c.sum
	s.Read = c.read.Load()
	return s
}
