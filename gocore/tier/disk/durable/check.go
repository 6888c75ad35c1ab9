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

// Scope selects the checkpoints whose bytes are read and verified against their checksums. The zero value selects none.
type Scope struct {
	Data  bool    // all
	Part  uint64  // with Parts: those with serial % Parts == Part
	Parts uint64  // 0: unused
	Share float64 // this share of them, chosen at random; 0: unused
	Seed  uint64  // of the random choice
}

// ErrScope: the scope is invalid.
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

// Summary is the result of a check. Faults are sorted by file and offset.
type Summary struct {
	Checkpoints int   // in the store
	Bytes       int64 // of their regions
	Chosen      int   // checkpoints whose bytes are read
	ChosenBytes int64
	Read        int64 // bytes of regions that were read so far
	Unsummed    int   // chosen ones without checksums: only their readability is verified
	Unknown     int   // checkpoints in a form of later versions, which are skipped
	Superseded  int   // dropped or replaced while the check ran: their faults are ignored
	Damaged     int   // checkpoints with faults
	Torn        int64 // unacknowledged bytes at the catalog's end: no damage
	Unused      []Unused
	Faults      []Fault
}

// Unused is a data file without committed checkpoints. It is no damage; opening the store for writing, or Collect, removes it.
type Unused struct {
	File  string
	Bytes int64
}

// Check looks for damage in a store, and changes nothing. Beside a writer it reports no false damage: before it reports a fault, it looks the checkpoint up
// in a fresh read of the catalog.
type Check struct {
	v       *View
	files   map[int64]int64  // segment lengths of the data files, by segment; those that belong to another store are left out
	heads   map[uint64]error // data files with wrong heads
	foreign map[int64]bool   // segments whose data file is another store's or another number's
	ends    int64            // of the space: no data file reaches beyond it
	rows    []chosen         // by place
	sum     Summary

	undescribed []Fault
	incomplete  map[uint64]int // data files whose indexes lack rows, with their number

	long    sync.Mutex        // held while a piece with long containers, or long metadata, is examined
	longest *differenceReader // of the last row with long metadata

	mu    sync.Mutex // guards the fields below, and the View's State
	next  int        // row
	cut   cutter
	found []suspicion
	read  atomic.Int64
	ended bool
}

// chosen is a row that the check covers.
type chosen struct {
	run
	history uint32
	key     model.Key
	serial  uint64
	bytes   int64 // of its regions
	read    bool
}

// Check begins a check. It verifies everything but the bytes of checkpoints, which Step reads. It takes some 100 bytes of memory for each checkpoint.
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

// list collects the rows and the data files.
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
			r, _ := c.v.identity.place(row.Extents) // the survey has verified that the row has a place
			x := chosen{run: r, history: h.ID, key: row.Key, serial: row.Serial}
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

// listFiles finds the data files, those that belong to another store, and those with damaged heads.
func (c *Check) listFiles(at *contents) (err error) {
	if c.files, err = at.Lengths(); err != nil {
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

// choose selects the rows whose bytes are read.
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

// mostReaders bounds the goroutines that read: enough to keep a fast disk busy, few enough to bound the memory.
const mostReaders = 8

// Step continues until enough returns true or the check is complete; Summary then has the result. Any goroutine may call enough. Step first completes
// pieces that it has begun: at most 64 MiB each, or a whole region that has a checksum but no leaf hashes. Calls must not overlap.
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

// reader verifies pieces until enough returns true or none is left.
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
		w.begin(some[len(some)-1].lies.end)
		for _, p := range some {
			if err := c.examineInTurn(w, p); err != nil {
				return err
			}
		}
	}
	return w.close()
}

// longContainer is the length from which on containers are read one at a time, since the memory for a container is as long. Pieces that velocpy writes are
// shorter. The same holds for the metadata of a difference.
const longContainer = 65 << 20

// examineInTurn reports the suspicions about a piece.
func (c *Check) examineInTurn(w *window, p piece) error {
	if p.longest < longContainer {
		c.report(c.examine(w, p))
		return nil
	}
	c.long.Lock()
	defer c.long.Unlock()
	c.report(c.examine(w, p))
	return w.shrink()
}

func (c *Check) report(found []suspicion) {
	if len(found) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = append(c.found, found...)
}

// Summary returns the result so far; it has faults only after Step has reported completion.
func (c *Check) Summary() Summary {
	s := c.sum
	s.Read = c.read.Load()
	return s
}
