package durable

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/tier/disk/catalog"
)

// slot identifies a checkpoint; it has versions.
type slot struct {
	history string
	key     model.Key
}

func (s slot) String() string { return s.history + "/" + s.key.String() }

// version is one version of a checkpoint: its bytes follow from its serial.
type version struct {
	serial uint64
	size   int64
}

// loss is the number in its meta: some versions have the same.
func (v version) loss() uint64 { return v.serial * 5 % 7 }

func (v version) meta() string { return fmt.Sprintf(`{"serial": %d, "loss": %d}`, v.serial, v.loss()) }

func (v version) bytes() []byte {
	p := make([]byte, v.size+8)
	for i := int64(0); i < v.size; i += 8 {
		binary.LittleEndian.PutUint64(p[i:], (v.serial<<32+uint64(i)+1)*0x9e3779b97f4a7c15)
	}
	if v.differs() {
		for _, s := range v.layout().Spans {
			for i := range s.Bytes {
				if i/64%3 > 0 {
					p[s.Offset+i] = byte((i + 1) * (i>>8 + 7) >> 3) // as in other versions
				}
			}
		}
	}
	return p[:v.size]
}

// differs tells whether a version is stored as a difference, if there is room. Two thirds of its bytes are those of other such versions.
func (v version) differs() bool { return v.serial%4 == 3 }

// encoding returns the containers of an encoded version, and nil for others. About half of the versions are encoded, as integers or as floats: those can be
// made smaller, and these cannot.
func (v version) encoding() (*model.Encoding, []byte) {
	if v.serial%4 > 1 {
		return nil, v.bytes()
	}
	return encoded(v.layout(), v.bytes(), model.PartGrain, []codec.Kind{codec.Int64, codec.Float32}[v.serial/4%2], compressions[(v.serial+v.serial/4)%6])
}

// row returns the catalog's row of a version, and the bytes that lie on disk.
func (v version) row(key model.Key) (*catalog.Row, []byte) {
	l := v.layout()
	row := &catalog.Row{Key: key, Serial: v.serial, Layout: l, Align: 64, Sums: sums(l, v.bytes()), Meta: v.meta()}
	e, stored := v.encoding()
	row.Encoding, row.Content = e, catalog.ContentOf(e, nil)
	return row, stored
}

// layout has two regions if there is enough to divide.
func (v version) layout() *catalog.Layout {
	l := &catalog.Layout{Layout: model.Layout{Slot: v.size, Text: fmt.Sprint("bytes ", v.size), Spans: []model.Span{{Bytes: v.size}}}}
	if half := v.size / 2; half > 0 {
		l.Spans = []model.Span{{Bytes: half}, {Offset: half, Bytes: v.size - half}}
	}
	return l
}

func sums(l *catalog.Layout, p []byte) []uint64 {
	var all []uint64
	for _, s := range l.Spans {
		all = append(all, checksum.Sum(p[s.Offset:s.Offset+s.Bytes]))
	}
	return all
}

// reference is the expected content of a store.
type reference struct {
	rows map[slot]version
	keep map[string]string // retentions, as printed
}

func newModel() reference { return reference{rows: map[slot]version{}, keep: map[string]string{}} }

func (m reference) with(changes []*Change) reference {
	to := reference{maps.Clone(m.rows), maps.Clone(m.keep)}
	for _, c := range changes {
		switch {
		case c.Put != nil:
			to.rows[slot{c.History, c.Put.Key}] = version{c.Put.Serial, c.Put.Layout.Slot}
		case c.Drop:
			at := slot{c.History, c.Key}
			if v, ok := to.rows[at]; ok && v.serial <= c.Serial {
				delete(to.rows, at)
			}
		case c.Clarify:
		case c.Clear:
			maps.DeleteFunc(to.rows, func(s slot, v version) bool { return s.history == c.History && v.serial <= c.Serial })
		case c.Retention.None():
			delete(to.keep, c.History)
		default:
			to.keep[c.History] = fmt.Sprintf("%+v", *c.Retention)
		}
	}
	return to
}

func (m reference) equal(other reference) bool {
	return maps.Equal(m.rows, other.rows) && maps.Equal(m.keep, other.keep)
}

func (m reference) String() string {
	var lines []string
	for s, v := range m.rows {
		lines = append(lines, fmt.Sprintf("%v: version %d of %d bytes", s, v.serial, v.size))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%s; keeps %v", strings.Join(lines, ", "), m.keep)
}

// shown returns the content of an open directory.
func shown(s *catalog.State) reference {
	m := newModel()
	for _, info := range s.Histories() {
		s.Each(info.ID, func(row catalog.Row) bool {
			m.rows[slot{info.Name, row.Key}] = version{row.Serial, row.Layout.Slot}
			return true
		})
		if info.Retention != nil {
			m.keep[info.Name] = fmt.Sprintf("%+v", *info.Retention)
		}
	}
	return m
}

// aligned returns memory that suits direct I/O.
func aligned(n int64) []byte {
	p := make([]byte, n+catalog.Block)
	skip := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))) & (catalog.Block - 1)
	return p[skip : skip+n : skip+n]
}

// anyRow accepts all rows.
func anyRow(slot, version) bool { return true }

// readable returns an error if the bytes of a current row are wrong.
func readable(c *contents, read func(off int64, p []byte) error, counts func(at slot, v version) bool) error {
	var bad error
	for _, info := range c.State().Histories() {
		c.State().Each(info.ID, func(row catalog.Row) bool {
			v := version{row.Serial, row.Layout.Slot}
			if !counts(slot{info.Name, row.Key}, v) {
				return true
			}
			got, err := slotOf(c, &row, read)
			_, n, _ := c.Place(&row)
			wanted, _ := v.encoding()
			switch want := v.bytes(); {
			case err != nil:
				bad = fmt.Errorf("%s/%s: %w", info.Name, row.Key, err)
			case (row.Encoding == nil) != (wanted == nil), row.Encoding != nil && row.Encoding.Sections != wanted.Sections,
				row.Difference != nil && !v.differs(), row.Content != catalog.ContentOf(row.Encoding, row.Difference):
				bad = fmt.Errorf("%s/%s, version %d: content %d", info.Name, row.Key, row.Serial, row.Content)
			case n != row.Bytes() || !bytes.Equal(got, want):
				bad = fmt.Errorf("%s/%s, version %d: other bytes", info.Name, row.Key, row.Serial)
			case !slices.Equal(row.Sums, sums(row.Layout, want)):
				bad = fmt.Errorf("%s/%s: other sums", info.Name, row.Key)
			case row.Meta != v.meta() || !slices.Equal(row.Layout.Spans, v.layout().Spans):
				bad = fmt.Errorf("%s/%s: another row", info.Name, row.Key)
			}
			return bad == nil
		})
	}
	return bad
}

// one returns the allowed state that a store equals, bytes included.
func one(c *contents, read func(off int64, p []byte) error, allowed []reference) (reference, error) {
	got := shown(c.State())
	if !slices.ContainsFunc(allowed, got.equal) {
		return got, fmt.Errorf("it holds\n  %v\nwhere it may hold\n  %v", got, allowed)
	}
	if read == nil {
		return got, nil
	}
	return got, readable(c, read, anyRow)
}

// recovered opens an interrupted store twice: both times it must have the same content, and an allowed one.
func recovered(o Options, allowed []reference) (reference, error) {
	var got reference
	for range 2 {
		d, err := Open(o)
		if err != nil {
			return got, err
		}
		got, err = one(d.contents, d.Space().Read, allowed)
		if err = errors.Join(err, proved(d.contents), d.Close()); err != nil {
			return got, err
		}
		allowed = []reference{got}
	}
	return got, nil
}

// proved verifies that every data file with checkpoints has its head.
func proved(c *contents) error {
	wrong, err := c.heads()
	for number, why := range wrong {
		if c.used(number) {
			err = errors.Join(err, fmt.Errorf("data file %d: %w", number, why))
		}
	}
	return err
}

// player drives a directory as a store does, and knows the content that must survive any failure.
type player struct {
	mem    *vfs.Mem
	under  func(m *vfs.Mem) vfs.FS // the file system that it uses on its disk
	at     string                  // the directory's name
	gone   bool                    // the disk has crashed: later calls have no effect
	repair bool
	made   made // layout of its store
	prompt bool // index entries are not deferred
	slack  int64
	frames map[string][]run // ranges of the current frames in the indexes of data files
	blocks int64
	r      *rand.Rand
	o      Options
	d      *Dir
	failed int // calls that failed so far

	trouble *vfs.Rule // fails two syncs while it is enabled

	mu        sync.Mutex  // also the directory's Guard
	sure      reference   // acknowledged content
	may       []reference // other possible contents: at most one unacknowledged batch counts
	flight    []*Change
	landed    chan bool
	good      bool // all of the latest group is durable
	serial    uint64
	taken     []bool // blocks of the space
	uncertain []run  // ranges that a committed record may refer to
	drafts    *drafts
	suspect   map[int64]bool
	wrong     error
}

const (
	playedSegment = 16 << 10
	playedDisk    = 8 << 20
)

func newPlayer(seed uint64, under func(m *vfs.Mem) vfs.FS) *player {
	trouble := &vfs.Rule{Ops: vfs.OpSync, Times: 2, Err: unix.EIO}
	trouble.Disable()
	return &player{
		trouble: trouble, at: dir, prompt: seed%2 == 0,
		mem: vfs.NewMem(playedDisk), under: under, blocks: 48, r: rand.New(rand.NewPCG(seed, 7)), sure: newModel(), landed: make(chan bool), frames: map[string][]run{},
	}
}

// options are the options for the store on a disk.
func (p *player) options(fs vfs.FS) Options {
	return Options{
		FS: fs, Dir: p.at, Capacity: p.blocks * catalog.Block, SegmentBytes: playedSegment, Direct: true, Slack: p.slack, Repair: p.repair,
		made: p.made, prompt: p.prompt,
	}
}

// allowed returns the contents that a crash may leave now. The caller holds mu.
func (p *player) allowed() []reference {
	all := append([]reference{p.sure}, p.may...)
	if len(p.flight) > 0 {
		all = append(all, p.sure.with(p.flight))
	}
	return all
}

// open opens the directory and verifies its content. That content is acknowledged from then on, as later changes build on it.
func (p *player) open() bool {
	if p.d != nil {
		return true
	}
	p.o = p.options(p.under(p.mem))
	p.o.Guard = &p.mu
	p.o.Land, p.o.Landed = p.land, p.trim
	d, err := Open(p.o)
	if err != nil {
		p.failed++
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	got, err := one(d.contents, nil, p.allowed())
	if err != nil {
		p.wrong = errors.Join(p.wrong, fmt.Errorf("after a new start %w", err))
	}
	p.d, p.sure, p.may, p.uncertain, p.suspect = d, got, nil, nil, map[int64]bool{}
	p.drafts = newDrafts(p.r.Uint64(), []difference.Method{difference.Runs, difference.Tree, referring}[p.serial%3], 64<<10)
	p.serial = max(p.serial, d.State().MaxSerial())
	p.taken = make([]bool, p.blocks)
	for from, end := range d.Occupied() {
		p.mark(run{from, end}, true)
	}
	return true
}

func (p *player) close() bool {
	if p.d == nil {
		return true
	}
	err := p.d.Close()
	p.d = nil
	if err != nil {
		p.failed++
	}
	return err == nil
}

// crash continues with the state that a loss of power leaves.
func (p *player) crash(keep float64) {
	p.mu.Lock()
	left := p.mem.Crash(p.r, keep)
	p.gone = true
	p.mu.Unlock()
	p.close()
	p.mem, p.gone = left, false
	p.open()
}

func (p *player) mark(r run, taken bool) {
	for at := r.from / catalog.Block; at*catalog.Block < r.end; at++ {
		p.taken[at] = taken
	}
}

// room is the first free range, outside of suspect segments.
func (p *player) room(n int64) (run, bool) {
	free := int64(0)
	for at := range p.blocks {
		if p.taken[at] || p.suspect[at*catalog.Block/playedSegment] {
			free = 0
			continue
		}
		if free++; free*catalog.Block >= n {
			end := (at + 1) * catalog.Block
			return run{end - n, end}, true
		}
	}
	return run{}, false
}

// put writes a version and returns its change; nil if it could not be written.
func (p *player) put(history string, key model.Key, size int64) *Change {
	if p.d == nil {
		return nil
	}
	p.mu.Lock()
	p.serial++
	v := version{p.serial, size}
	row, stored := v.row(key)
	if v.differs() {
		row.Difference, stored = p.drafts.object(row.Layout, v.bytes())
		row.Content = catalog.ContentOf(nil, row.Difference)
	}
	room, ok := p.room(row.Bytes())
	if !ok && v.differs() {
		p.drafts.writer.Forget(row.Difference.Number)
		row, stored = v.row(key)
		room, ok = p.room(row.Bytes())
	}
	if row.Difference != nil {
		p.drafts.lies(row.Difference, room.from)
		few := func(s model.Source) bool {
			return s.Bytes() > 2*catalog.Block || len(p.drafts.known) > 4 && s.Number < row.Difference.Number-3
		}
		p.drafts.forget(few) // long objects would be kept too long
	}
	if ok {
		p.mark(room, true)
	}
	p.mu.Unlock()
	if !ok {
		p.wrong = errors.Join(p.wrong, fmt.Errorf("no room for %d bytes", size))
		return nil
	}
	if err := p.d.Space().Write(room.from, v.padded(stored)); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.vacate(room)
		p.failed++
		return nil
	}
	return &Change{History: history, Put: row, Off: room.from}
}

// padded pads bytes to whole blocks, as a store writes them, mostly at an address that suits direct I/O.
func (v version) padded(stored []byte) []byte {
	size := int64(len(stored))
	n := max((size+catalog.Block-1)/catalog.Block, 1) * catalog.Block
	if v.serial%8 == 0 {
		return append(stored, make([]byte, n-size)...)
	}
	p := aligned(n)
	copy(p, stored)
	return p
}

func (p *player) drop(history string, key model.Key) *Change {
	return &Change{History: history, Key: key, Serial: p.serial, Drop: true}
}

func (p *player) clear(history string) *Change {
	return &Change{History: history, Serial: p.serial, Clear: true}
}

func (p *player) retain(history string, r model.Retention) *Change {
	return &Change{History: history, Retention: &r}
}

// prune drops checkpoints that the retention of a history does not keep, as a store does once a checkpoint is durable.
func (p *player) prune(history string) (drops []*Change) {
	if p.d == nil {
		return []*Change{nil}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.d.unkept() {
		if x.name == history {
			drops = append(drops, &Change{History: history, Key: x.key, Serial: x.serial, Drop: true})
		}
	}
	return drops
}

// commit hands changes over and waits until their outcome is known; true: all are durable.
func (p *player) commit(changes ...*Change) bool {
	made := len(changes)
	changes = slices.DeleteFunc(changes, func(c *Change) bool { return c == nil })
	if p.d == nil || len(changes) == 0 {
		return made == 0
	}
	p.mu.Lock()
	p.flight = changes
	p.mu.Unlock()
	p.d.Commit(changes...)
	good := <-p.landed
	if !good {
		p.failed++
	}
	return good && made == len(changes)
}

// sharing counts the checkpoints that have become durable and need the objects of others.
var sharing atomic.Int64

// land marks ranges as taken or free, as a store does.
func (p *player) land(group []*Change, suspect []int64) {
	p.mu.Lock()
	good := true
	for _, number := range suspect {
		p.suspect[number] = true
		p.drafts.forget(func(s model.Source) bool {
			return s.Offset/playedSegment <= number && number <= (s.Offset+s.Bytes()-1)/playedSegment
		})
	}
	var counts, uncertain []*Change
	for _, c := range group {
		var gone []catalog.Row
		if c.Err == nil {
			gone = p.replaced(c)
		}
		p.d.Apply(c)
		switch {
		case c.Err == nil:
			counts = append(counts, c)
			left := p.uncertain
			p.uncertain, p.may = nil, nil
			p.vacate(left...)
			for _, row := range gone {
				p.vacate(p.rooms(&row)...)
			}
			if c.Put != nil {
				if len(c.Put.Sources) > 0 {
					sharing.Add(1)
				}
				for _, room := range p.rooms(c.Put) { // an earlier change of the group may have vacated one of a source
					p.mark(room, true)
				}
			}
		case c.Uncertain:
			uncertain = append(uncertain, c)
			if c.Put != nil {
				p.uncertain = append(p.uncertain, run{c.Off, c.Off + c.Put.Bytes()})
				if c.Put.Sources != nil {
					p.uncertain = append(p.uncertain, p.rooms(c.Put)...)
				}
			}
		case c.Put != nil:
			p.vacate(run{c.Off, c.Off + c.Put.Bytes()})
		}
		good = good && c.Err == nil
	}
	p.sure = p.sure.with(counts)
	if len(uncertain) > 0 {
		p.may = append(p.may, p.sure.with(uncertain))
	}
	if got := shown(p.d.State()); !got.equal(p.sure) {
		p.wrong = errors.Join(p.wrong, fmt.Errorf("the directory takes for durable\n  %v\nwhere that is\n  %v", got, p.sure))
	}
	p.flight, p.good = nil, good
	p.mu.Unlock()
}

// trim treats the files of suspect segments as a store does: it removes empty ones, which may begin anew then, and punches holes into the free ranges of
// others.
func (p *player) trim() {
	p.mu.Lock()
	idle := map[int64][]run{}
	for number := range p.suspect {
		for at := number * playedSegment; at < (number+1)*playedSegment; at += catalog.Block {
			if block := at / catalog.Block; block >= p.blocks || !p.taken[block] {
				idle[number] = append(idle[number], run{at, at + catalog.Block})
			}
		}
	}
	p.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(idle)) {
		runs := idle[number]
		if len(runs) == playedSegment/catalog.Block {
			if p.d.Space().Discard(number) == nil {
				p.mu.Lock()
				delete(p.suspect, number)
				p.mu.Unlock()
			}
			continue
		}
		for _, r := range runs {
			_ = p.d.Space().Punch(r.from, r.end-r.from) // if that fails, the file stays as it is
		}
	}
	p.landed <- p.good
}

// replaced returns the rows that a change removes.
func (p *player) replaced(c *Change) (gone []catalog.Row) {
	s := p.d.State()
	id, ok := s.History(c.History)
	if !ok || c.Retention != nil {
		return nil
	}
	s.Each(id, func(row catalog.Row) bool {
		if c.Put != nil && row.Key == c.Put.Key || c.Drop && row.Key == c.Key && row.Serial <= c.Serial || c.Clear && row.Serial <= c.Serial {
			gone = append(gone, row)
		}
		return true
	})
	return gone
}

// rooms returns the rooms of a row that has its extents.
func (p *player) rooms(row *catalog.Row) (all []run) {
	claims, ok := p.d.identity.claims(row)
	if !ok {
		p.wrong = errors.Join(p.wrong, fmt.Errorf("%s lies nowhere", row.Key))
	}
	for _, c := range claims {
		all = append(all, c.run)
	}
	return all
}

// vacate marks ranges as free that no row needs, nor may need. Nothing later refers to the objects in them.
func (p *player) vacate(rooms ...run) {
	needed := slices.Clone(p.uncertain)
	p.d.eachClaim(func(all []claim) {
		for _, c := range all {
			needed = append(needed, c.run)
		}
	})
	for _, room := range rooms {
		if slices.ContainsFunc(needed, func(r run) bool { return r.from < room.end && room.from < r.end }) {
			continue
		}
		p.mark(room, false)
		p.drafts.forget(func(s model.Source) bool { return s.Offset == room.from })
	}
}

// flip flips a bit of a file, as a failing disk does.
func flip(m *vfs.Mem, name string, bit int64) error {
	f, err := m.Open(name, true, false)
	if err != nil {
		return err
	}
	b := []byte{0}
	_, err = f.ReadAt(b, bit/8)
	b[0] ^= 1 << (bit % 8)
	if err == nil {
		_, err = f.WriteAt(b, bit/8)
	}
	return errors.Join(err, f.Sync(), f.Close())
}
