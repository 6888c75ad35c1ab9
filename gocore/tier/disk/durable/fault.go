package durable

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/segment"
)

// Kind classifies damage.
type Kind string

const (
	Identity   Kind = "identity"   // a copy of the identity; another copy is intact
	Heading    Kind = "head"       // the head of a data file, which names its store
	Index      Kind = "index"      // the index of a data file lacks checkpoints, so that a rebuild of the catalog would lose them
	Foreign    Kind = "foreign"    // a data file of another store or number is in the place of one
	Catalog    Kind = "catalog"    // a part of the catalog; its records are lost
	Missing    Kind = "missing"    // no data file has these bytes of a checkpoint
	Unreadable Kind = "unreadable" // bytes of a checkpoint cannot be read
	Changed    Kind = "changed"    // bytes of a checkpoint do not match its checksum
	// Description: the catalog's description of a checkpoint's regions, or its meta, is invalid.
	Description Kind = "description"
)

// Fault is one case of damage, with its extent.
type Fault struct {
	Kind     Kind
	File     string
	Offset   int64 // in the file
	Bytes    int64 // 0: unknown
	Row      *Place
	Harmless bool // no acknowledged content is lost
	Fleeting bool // a second read was right: suspect memory, cable or controller rather than the medium
	Why      string
}

// Place is the damaged part of a checkpoint; for a Description, the whole checkpoint.
type Place struct {
	History string
	Key     model.Key
	Serial  uint64
	Region  int
	Offset  int64 // in the region
	Bytes   int64 // of the region
}

// structure returns the faults of identity and catalog.
func (r *records) structure() (all []Fault) {
	for _, b := range r.bad {
		all = append(all, Fault{Kind: Identity, File: b.file, Offset: b.at, Bytes: identityCopy, Harmless: true, Why: b.why.Error()})
	}
	for _, d := range r.log.Damage {
		all = append(all, Fault{Kind: Catalog, File: d.File, Offset: d.Offset, Harmless: d.Harmless, Why: d.String()})
	}
	for _, err := range r.lost {
		all = append(all, Fault{Kind: Catalog, Why: err.Error()})
	}
	return all
}

// headFaults adds the faults of heads. It skips data files that no checkpoint uses any more, as a writer may have begun them anew.
func (c *Check) headFaults(fresh *contents) {
	for _, number := range slices.Sorted(maps.Keys(c.heads)) {
		why := fresh.look(number)
		f := Fault{Kind: Heading, File: segment.FileName(number), Bytes: segment.HeadBytes, Harmless: true}
		switch used := fresh.used(number); {
		case errors.Is(why, segment.ErrForeign):
			f.Kind, f.Harmless = Foreign, !used
		case !used || !errors.Is(why, segment.ErrHead):
			continue
		}
		f.Why = why.Error()
		c.sum.Faults = append(c.sum.Faults, f)
	}
}

// indexFaults adds the faults of indexes that still lack rows.
func (c *Check) indexFaults(fresh *contents, files map[int64]int64) error {
	maps.DeleteFunc(files, func(number, _ int64) bool { return c.incomplete[uint64(number)+1] == 0 })
	now, err := fresh.incomplete(c.v.data, files, fresh.settled())
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(now)) {
		c.sum.Faults = append(c.sum.Faults, Fault{
			Kind: Index, File: segment.FileName(number), Offset: segment.HeadBytes, Bytes: fresh.identity.indexBytes(), Harmless: true,
			Why: fmt.Sprintf("its index lacks %d of the checkpoints in the file: were the catalog lost, they would be too", now[number]),
		})
	}
	return nil
}

// rereadBytes bounds the bytes that are read a second time.
const rereadBytes = 256 << 20

// settle turns suspicions into faults. It drops suspicions of checkpoints that were dropped or replaced meanwhile, as their range may have been written to
// again.
func (c *Check) settle() error {
	c.sum.Faults = c.v.structure()
	if len(c.found)+len(c.undescribed)+len(c.heads)+len(c.incomplete) == 0 {
		return nil
	}
	fresh, err := read(c.v.o)
	if err != nil {
		return err
	}
	c.headFaults(fresh)
	now := &Check{v: c.v}
	if err := now.listFiles(fresh); err != nil {
		return err
	}
	if err := c.indexFaults(fresh, maps.Clone(now.files)); err != nil {
		return err
	}
	w, err := newWindow(c.v.data)
	if err != nil {
		return err
	}
	budget := int64(rereadBytes)
	gone, damaged := map[uint64]bool{}, map[uint64]bool{}
	for _, f := range c.undescribed {
		if !fresh.counts(f.Row.History, f.Row.Key, f.Row.Serial) {
			gone[f.Row.Serial] = true
			continue
		}
		damaged[f.Row.Serial] = true
		c.sum.Faults = append(c.sum.Faults, f)
	}
	slices.SortFunc(c.found, func(a, b suspicion) int {
		return cmp.Or(cmp.Compare(a.lies.from, b.lies.from), cmp.Compare(a.region, b.region), cmp.Compare(a.start, b.start))
	})
	var again again
	for _, s := range c.found {
		name, _ := c.v.state.HistoryName(s.row.History)
		if !fresh.counts(name, s.row.Key, s.row.Serial) {
			gone[s.row.Serial] = true
			continue
		}
		damaged[s.row.Serial] = true
		if s.fault != Missing && budget > 0 && !again.covers(s) {
			again = againOf(now, w, s)
			budget -= int64(s.end-s.from) * 256 << 10
		}
		c.fault(s, name, again.right(s))
	}
	c.sum.Superseded, c.sum.Damaged = len(gone), len(damaged)
	return w.close()
}

// again is the result of a second read of a piece.
type again struct {
	piece *piece
	found []suspicion
}

func againOf(c *Check, w *window, s suspicion) again {
	w.begin(s.lies.end)
	return again{piece: &s.piece, found: c.examine(w, s.piece)}
}

func (a *again) covers(s suspicion) bool {
	return a.piece != nil && a.piece.row == s.row && a.piece.region == s.region && a.piece.from == s.from
}

// right tells whether the second read found nothing wrong.
func (a *again) right(s suspicion) bool {
	return s.fault != Missing && a.covers(s) && !slices.ContainsFunc(a.found, func(f suspicion) bool {
		return f.start < s.start+max(s.bytes, 1) && s.start < f.start+max(f.bytes, 1) // that of an empty region is about the metadata of a difference
	})
}

// fault adds a suspicion to the faults, one fault per data file. It extends the previous fault where it continues that. The fault of a raw row has the part
// of the region that lies in the file, that of another row the part that the containers or the object have.
func (c *Check) fault(s suspicion, history string, fleeting bool) {
	start, bytes := s.start, s.bytes
	extents := []catalog.Extent{{}}
	if s.suspect.end > s.suspect.from {
		extents = c.v.identity.extents(s.suspect.from, s.suspect.end-s.suspect.from)
	}
	for _, x := range extents {
		if s.row.Content == catalog.Raw {
			bytes = x.Bytes
		}
		f := Fault{Kind: s.fault, Offset: c.v.InFile(x), Bytes: x.Bytes, Fleeting: fleeting, Why: s.why, Row: &Place{
			History: history, Key: s.row.Key, Serial: s.row.Serial, Region: s.region, Offset: start, Bytes: bytes,
		}}
		if x.File > 0 {
			f.File = segment.FileName(x.File)
		}
		if s.row.Content == catalog.Raw {
			start += x.Bytes
		}
		if n := len(c.sum.Faults); n == 0 || !c.sum.Faults[n-1].join(f) {
			c.sum.Faults = append(c.sum.Faults, f)
		}
	}
}

// join extends a fault by its continuation; false if by is none.
func (f *Fault) join(by Fault) bool {
	a, b := f.Row, by.Row
	if a == nil || f.Kind != by.Kind || f.File != by.File || f.Fleeting != by.Fleeting || f.Why != by.Why ||
		a.Serial != b.Serial || a.Region != b.Region || a.Offset+a.Bytes != b.Offset {
		return false
	}
	switch {
	case f.Offset == by.Offset && f.Bytes == by.Bytes: // the same container
	case f.Offset+f.Bytes == by.Offset:
		f.Bytes += by.Bytes
	default:
		return false
	}
	a.Bytes += b.Bytes
	return true
}

func (f Fault) String() string {
	if f.Row == nil {
		return fmt.Sprintf("%s: %s", f.File, f.Why)
	}
	if f.Kind == Description {
		return fmt.Sprintf("%s %s: %s", f.Row.History, f.Row.Key, f.Why)
	}
	return fmt.Sprintf("%s %s, region %d, bytes %d to %d (%s, byte %d on): %s",
		f.Row.History, f.Row.Key, f.Row.Region, f.Row.Offset, f.Row.Offset+f.Row.Bytes, f.File, f.Offset, f.Why)
}
