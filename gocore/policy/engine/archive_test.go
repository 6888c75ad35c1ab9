package engine

import (
	"errors"
	"slices"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/fragment"
)

// The tiers of newArchived.
const (
	atDevice = iota
	atHost
	atDisk
	atArchive
)

// archived is an engine of a device, a host, and two durable tiers: a disk and an archive below it. The test is the catalog of both.
type archived struct {
	*Engine
	t     *testing.T
	h     *History
	rows  map[model.Key]Stored
	found int // rows that have become records
}

func newArchived(t *testing.T, device, host, disk, archive int64) *archived {
	t.Helper()
	s := &archived{t: t, rows: map[model.Key]Stored{}}
	s.open(device, host, disk, archive)
	return s
}

// open makes a new engine over the rows, as another process does.
func (s *archived) open(device, host, disk, archive int64) {
	s.Engine = New(Config{Catalog: s, Tiers: []TierConfig{
		{Name: "device", Capacity: device, Private: true, Device: true, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "host", Capacity: host, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "disk", Capacity: disk, Remote: true, Durable: true, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "archive", Capacity: archive, Remote: true, Durable: true},
	}})
	s.h = s.History("h")
	for t := range s.tiers {
		var here []Stored
		for _, row := range s.rows {
			if row.Tier == t {
				here = append(here, row)
			}
		}
		slices.SortFunc(here, func(a, b Stored) int { return int(a.Offset - b.Offset) })
		s.Reserve(t, func(yield func(from, end int64) bool) {
			for i := 0; i < len(here); {
				from, end := here[i].Offset, here[i].Offset
				for ; i < len(here) && here[i].Offset == end; i++ {
					end += here[i].Size
				}
				if !yield(from, end) {
					return
				}
			}
		})
	}
	for _, row := range s.rows {
		s.Continue(row.Written)
	}
}

func (s *archived) Lookup(_ *History, k model.Key) (size int64, ok bool) {
	row, ok := s.rows[k]
	return row.Size, ok
}

func (s *archived) Find(h *History, k model.Key) *Record {
	row, ok := s.rows[k]
	if !ok {
		return nil
	}
	s.found++
	return s.Adopt(h, k, row)
}

func (s *archived) Keeps(r *Record, t int, off int64) bool {
	row := s.rows[r.Key]
	return row.Written == r.Written() && row.Tier == t && row.Offset == off
}

func (s *archived) Freed(int) (off, bytes int64, ok bool) { return 0, 0, false }

func (s *archived) Removed(*Record, *Record) {}

// write captures a checkpoint whose top tier is the host.
func (s *archived) write(k, size int64, o CaptureOptions) *Record {
	s.t.Helper()
	o.Top = max(o.Top, atHost)
	return s.begin(k, size, o)
}

func (s *archived) begin(k, size int64, o CaptureOptions) *Record {
	s.t.Helper()
	c, err := s.BeginCapture(0, s.h, model.NumberKey(k), size, 1, nil, o)
	if err != nil {
		s.t.Fatal(err)
	}
	if c.Phase == Ready {
		s.EndCapture(0, c, true)
	}
	return c.Rec
}

// move carries out the next transfer of a direction and commits it; nil: there was none.
func (s *archived) move(w Want) *Transfer {
	x := s.Next(0, w)
	if x != nil {
		s.commit(x)
		s.Done(0, x, nil)
	}
	return x
}

func (s *archived) commit(x *Transfer) {
	if x.To >= 0 && s.tiers[x.To].Durable && (x.Kind == Flush || x.Kind == Spill) {
		s.rows[x.Rec.Key] = Stored{
			Tier: x.To, Size: x.Rec.Size, Align: 1, Offset: x.ToOff, Top: x.Rec.Top(), Written: x.Rec.Written(),
		}
	}
}

// settleDown carries out all flushes.
func (s *archived) settleDown() {
	for s.move(anyDown) != nil {
	}
}

// moves carries out all transfers of a direction and lists the tiers from and to which they go.
func (s *archived) moves(w Want) (list [][2]int) {
	for x := s.move(w); x != nil; x = s.move(w) {
		list = append(list, [2]int{x.From, x.To})
	}
	return list
}

// in lists the tiers that have all bytes of a checkpoint.
func (s *archived) in(r *Record) (tiers []int) {
	for t := range s.tiers {
		if s.Complete(r, t) {
			tiers = append(tiers, t)
		}
	}
	return tiers
}

// A capture that asks for the archive goes down over every link. A wait for the archive ends there, one for the disk ends at the disk.
func TestAFlushGoesDownToTheArchive(t *testing.T) {
	s := newArchived(t, 100, 100, 100, 100)
	r := s.begin(1, 10, CaptureOptions{Top: atDevice, Down: atArchive})
	disk, archive := s.Await(0, []*Record{r}, atDisk), s.Await(0, []*Record{r}, atArchive)
	for _, want := range [][2]int{{atDevice, atHost}, {atHost, atDisk}, {atDisk, atArchive}} {
		if done := want[0] >= atDisk; (disk.Phase == Ended) != done || archive.Phase == Ended {
			t.Errorf("before the flush from tier %d: phases %d and %d", want[0], disk.Phase, archive.Phase)
		}
		if x := s.move(anyDown); x == nil || x.From != want[0] || x.To != want[1] {
			t.Fatalf("%+v, wanted %v", x, want)
		}
	}
	if archive.Phase != Ended || archive.Err != nil || !slices.Equal(s.in(r), []int{atDevice, atHost, atDisk, atArchive}) || s.Durable(r) != 0b1111 {
		t.Errorf("phase %d, %v; in %v", archive.Phase, archive.Err, s.in(r))
	}
	if s.rows[r.Key].Tier != atArchive {
		t.Errorf("%+v", s.rows[r.Key])
	}
}

// Without a request, lazy flushes stop as soon as there is room in their tier: nothing goes to the archive.
func TestNothingGoesToTheArchiveUnasked(t *testing.T) {
	s := newArchived(t, 100, 100, 1000, 1000)
	for k := range int64(8) {
		s.write(k, 10, CaptureOptions{Down: atDisk})
	}
	if got := s.moves(anyDown); slices.ContainsFunc(got, func(m [2]int) bool { return m[1] == atArchive }) || len(got) != 8 {
		t.Errorf("%v", got)
	}
}

// The disk evicts copies that the archive has, and no others. Their room belongs to new versions from then on, and the catalog refers to the archive.
func TestTheDiskEvictsWhatTheArchiveHas(t *testing.T) {
	s := newArchived(t, 100, 100, 30, 1000)
	var recs []*Record
	for k := range int64(3) {
		down := atDisk
		if k == 1 {
			down = atArchive
		}
		recs = append(recs, s.write(k, 10, CaptureOptions{Down: down}))
	}
	s.settleDown()
	for k := int64(3); k < 20; k++ {
		for _, r := range recs {
			row := s.rows[r.Key]
			if f := s.Fragment(r, row.Tier); !s.Complete(r, row.Tier) || f.Offset != row.Offset {
				t.Fatalf("%v: %+v, in %v", r.Key, row, s.in(r))
			}
			if s.Complete(r, atDisk) && (s.Fragment(r, atDisk).Class == fragment.Free) != (row.Tier == atArchive) {
				t.Fatalf("%v: %+v, and its copy is of class %d", r.Key, row, s.Fragment(r, atDisk).Class)
			}
		}
		recs = append(recs, s.write(k, 10, CaptureOptions{Down: atDisk}))
		s.settleDown()
	}
	if evicted := s.Stats.Tiers[atDisk].Evicted; evicted < 150 || s.Use(atDisk).Used > 30 || s.Stats.Tiers[atArchive].Written < evicted {
		t.Errorf("%d bytes were evicted, %+v", evicted, s.Use(atDisk))
	}
}

// When the archive is full, the disk has no more room than that of its gaps, and a wait for it fails.
func TestAFullArchiveFillsTheDisk(t *testing.T) {
	s := newArchived(t, 100, 100, 20, 10)
	for k := range int64(3) {
		w := s.Await(0, []*Record{s.write(k, 10, CaptureOptions{})}, atDisk)
		s.settleDown()
		if w.Phase != Ended || w.Err != nil {
			t.Fatalf("%d: phase %d, %v", k, w.Phase, w.Err)
		}
	}
	w := s.Await(0, []*Record{s.write(3, 10, CaptureOptions{})}, atDisk)
	s.settleDown()
	if w.Phase != Ended || !errors.Is(w.Err, ErrFull) {
		t.Errorf("phase %d, %v", w.Phase, w.Err)
	}
}

// Another process finds the checkpoints of both durable tiers, and looking for them makes no record. A restore brings the bytes up over every link.
func TestARestoreComesUpFromTheArchive(t *testing.T) {
	s := newArchived(t, 100, 100, 100, 100)
	s.begin(1, 10, CaptureOptions{Top: atDevice, Down: atArchive})
	s.write(2, 20, CaptureOptions{Down: atDisk})
	s.settleDown()
	s.open(100, 100, 100, 100)
	if s.Use(atDisk).Held != 20 || s.Use(atArchive).Held != 10 {
		t.Fatalf("%d and %d bytes are reserved", s.Use(atDisk).Held, s.Use(atArchive).Held)
	}
	for k, want := range map[int64]int64{1: 10, 2: 20, 3: 0} {
		if size, ok := s.h.Lookup(model.NumberKey(k)); size != want || ok != (want > 0) || s.h.Has(model.NumberKey(k)) {
			t.Errorf("%d: %d bytes, %v", k, size, ok)
		}
	}
	if k := s.AutoKey(s.h); k != model.NumberKey(0) || s.AutoKey(s.h) != model.NumberKey(3) || s.found != 0 {
		t.Errorf("%v is free; %d records", k, s.found)
	}
	r, err := s.BeginRestore(0, s.h, model.NumberKey(1), RestoreOptions{})
	if err != nil || r.Phase != Waiting || r.Hit || r.Rec.Top() != atDevice {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, want := range [][2]int{{atArchive, atDisk}, {atDisk, atHost}, {atHost, atDevice}} {
		if x := s.move(anyUp); x == nil || x.Kind != Load || !x.Urgent || x.From != want[0] || x.To != want[1] {
			t.Fatalf("%+v, wanted %v", x, want)
		}
	}
	if r.Phase != Ready || r.Tier != atDevice || s.found != 1 {
		t.Fatalf("%+v; %d records", r, s.found)
	}
	s.EndRestore(0, r)

	// The copy in the disk has no row: dropped, it gives back its room, and the archive's stays reserved until the catalog lets it go.
	row := s.rows[r.Rec.Key]
	s.Drop(0, s.h, r.Rec.Key)
	if s.Use(atDisk).Held != 20 || s.Use(atDisk).Used != 20 || s.Use(atArchive).Held != 10 {
		t.Errorf("%+v, %+v", s.Use(atDisk), s.Use(atArchive))
	}
	delete(s.rows, r.Rec.Key)
	if !s.Release(0, atArchive, row.Offset, row.Size) || s.Use(atArchive).Used != 0 {
		t.Errorf("%+v", s.Use(atArchive))
	}
}

// A fetch past the cache crosses the link above the tier that has the bytes.
func TestAFetchFromTheArchive(t *testing.T) {
	s := newArchived(t, 100, 100, 100, 100)
	s.write(1, 10, CaptureOptions{Down: atArchive})
	s.settleDown()
	s.open(100, 100, 100, 100)
	r, err := s.BeginRestore(0, s.h, model.NumberKey(1), RestoreOptions{Partial: true, Into: true})
	if err != nil || !r.Direct {
		t.Fatalf("%+v, %v", r, err)
	}
	if x := s.Next(0, Want{Direction: Up, Link: atHost}); x != nil {
		t.Fatalf("%+v", x)
	}
	if x := s.move(Want{Direction: Up, Link: atDisk}); x == nil || x.Kind != Fetch || x.From != atArchive || r.Phase != Ready {
		t.Fatalf("%+v, phase %d", x, r.Phase)
	}
	s.EndRestore(0, r)
}

// A row of the disk that no record has stays where it is until its replacement is in the catalog, while the archive has room for others.
func TestTheDiskKeepsTheRoomOfItsRows(t *testing.T) {
	s := newArchived(t, 100, 100, 20, 100)
	s.write(1, 10, CaptureOptions{Down: atDisk})
	s.settleDown()
	old := s.rows[model.NumberKey(1)]
	s.open(100, 100, 20, 100)
	r := s.write(1, 10, CaptureOptions{Down: atDisk})
	if s.found != 1 || s.Use(atDisk).Held != 10 {
		t.Fatalf("%d records, %+v", s.found, s.Use(atDisk))
	}
	x := s.move(anyDown)
	if x == nil || x.ToOff == old.Offset || x.To != atDisk || x.Rec != r {
		t.Fatalf("%+v", x)
	}
	if !s.Release(0, atDisk, old.Offset, old.Size) || s.Use(atDisk).Used != 10 {
		t.Errorf("%+v", s.Use(atDisk))
	}
}

// Room of the disk that is retired is not made by evictions, whatever the archive has.
func TestAnEvictionMakesNoRetiredRoom(t *testing.T) {
	s := newArchived(t, 100, 100, 20, 100)
	r := s.write(1, 10, CaptureOptions{Down: atArchive})
	s.settleDown()
	at := s.Fragment(r, atDisk).Offset
	if got := s.Retire(atDisk, at, at+5); got != 0 || s.Fragment(r, atDisk).Class != fragment.Held {
		t.Fatalf("%d bytes were free, %+v", got, *s.Fragment(r, atDisk))
	}
	other := s.Await(0, []*Record{s.write(2, 10, CaptureOptions{})}, atDisk)
	s.settleDown()
	full := s.Await(0, []*Record{s.write(3, 20, CaptureOptions{})}, atDisk)
	s.settleDown()
	if other.Err != nil || full.Phase != Ended || !errors.Is(full.Err, ErrFull) || !s.Complete(r, atDisk) {
		t.Fatalf("%v, %v; in %v", other.Err, full.Err, s.in(r))
	}
	s.Reinstate(0, atDisk, at, at+5)
	if s.Fragment(r, atDisk).Class != fragment.Free {
		t.Errorf("%+v", *s.Fragment(r, atDisk))
	}
	s.Retire(atDisk, at, at+5)
	s.Drop(0, s.h, r.Key) // its room in the archive stays reserved for the row
	if s.InUse(atDisk) != 15 || s.Use(atArchive).Used < 10 {
		t.Errorf("%d bytes are not idle; %+v", s.InUse(atDisk), s.Use(atArchive))
	}
}

// Two devices share a host. Each has a link to it, takes only its own checkpoints, and is in nobody's way.
func TestTwoDevicesOverOneHost(t *testing.T) {
	c := twoDevices(t)
	begin := func(k, size int64, top int) *Record {
		t.Helper()
		x, err := c.BeginCapture(c.now, c.h, model.NumberKey(k), size, 1, nil, CaptureOptions{Top: top, Down: 3})
		if err != nil || x.Phase != Ready || x.Tier != top {
			t.Fatalf("%+v, %v", x, err)
		}
		c.EndCapture(c.now, x, true)
		return x.Rec
	}
	a, b, host := begin(1, 10*mb, 0), begin(2, 20*mb, 1), begin(3, 30*mb, 2)
	if c.Use(0).Used != 10*mb || c.Use(1).Used != 20*mb || c.Use(2).Used != 30*mb {
		t.Fatalf("%d, %d, %d", c.Use(0).Used, c.Use(1).Used, c.Use(2).Used)
	}
	for _, want := range []struct {
		link int
		rec  *Record
	}{{0, a}, {1, b}, {2, host}, {2, a}, {2, b}} {
		x := c.Next(c.now, Want{Direction: Down, Link: want.link})
		if x == nil || x.Rec != want.rec || x.From != want.link || x.To != max(want.link+1, 2) {
			t.Fatalf("%+v over link %d", x, want.link)
		}
		c.Done(c.now, x, nil)
	}
	for t2, used := range []int64{10, 20, 60, 60} {
		if c.Use(t2).Used != used*mb {
			t.Errorf("%d bytes in tier %d", c.Use(t2).Used, t2)
		}
	}
	for _, r := range []*Record{a, b, host} {
		x, err := c.BeginRestore(c.now, c.h, r.Key, RestoreOptions{})
		if err != nil || x.Phase != Ready || x.Tier != r.Top() || !x.Hit {
			t.Errorf("%v: %+v, %v", r.Key, x, err)
		}
		c.EndRestore(c.now, x)
	}
}

// A copy in the only durable tier must not be evicted for one that does not outlive the engine.
func TestBelowADurableTierAllAreDurable(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nothing objects to a durable tier over one that is not")
		}
	}()
	New(Config{Tiers: []TierConfig{{Name: "disk", Capacity: 10, Remote: true, Durable: true}, {Name: "below", Capacity: 10, Remote: true}}})
}

// A private tier need not be a device's: the memory of a part of the machine takes its own checkpoints only, and a transfer reads a source that stays.
func TestAPrivateMemory(t *testing.T) {
	e := New(Config{Tiers: []TierConfig{
		{Name: "node 0", Capacity: 100, Private: true, WriteRate: 1e9, ReadRate: 1e9}, {Name: "node 1", Capacity: 100, Private: true, WriteRate: 1e9, ReadRate: 1e9},
		{Name: "disk", Capacity: 1000, Remote: true},
	}})
	h := e.History("h")
	c, err := e.BeginCapture(0, h, model.NumberKey(0), 100, 1, nil, CaptureOptions{Top: 1})
	if err != nil || c.Tier != 1 || c.Phase != Ready {
		t.Fatalf("%+v, %v", c, err)
	}
	e.EndCapture(0, c, true)
	next, err := e.BeginCapture(0, h, model.NumberKey(1), 50, 1, nil, CaptureOptions{Top: 1})
	if err != nil || next.Phase != Waiting {
		t.Fatalf("%+v, %v", next, err)
	}
	if x := e.Next(0, Want{Direction: Down}); x != nil {
		t.Fatalf("%+v", x)
	}
	x := e.Next(0, Want{Direction: Down, Link: 1})
	if x == nil || x.Rec != c.Rec || x.From != 1 || x.To != 2 {
		t.Fatalf("%+v", x)
	}
	if e.Done(0, x, nil); next.Phase != Ready || next.Tier != 1 || e.Use(0).Used != 0 {
		t.Errorf("%+v, %d bytes in the other memory", next, e.Use(0).Used)
	}
	e.EndCapture(0, next, true)
}

// A capture looks up the version that it replaces, which may be a row of the catalog alone. The lookup makes a record of the row, and the record's copy can leave the
// disk for the archive: that makes room for the capture.
func TestARowMakesRoomForItsReplacement(t *testing.T) {
	s := newArchived(t, 10, 10, 10, 100)
	s.write(1, 4, CaptureOptions{Down: atDisk})
	s.settleDown()
	s.open(10, 3, 10, 100) // the host is too small for the next one
	c, err := s.BeginCapture(0, s.h, model.NumberKey(1), 7, 1, nil, CaptureOptions{Top: atHost})
	if err != nil || c.Phase != Waiting {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, want := range [][2]int{{atDisk, atArchive}, {caller, atDisk}} {
		if x := s.move(anyDown); x == nil || x.From != want[0] || x.To != want[1] {
			t.Fatalf("%+v, wanted %v", x, want)
		}
	}
	if c.Phase != Ended || c.Err != nil {
		t.Errorf("phase %d, %v", c.Phase, c.Err)
	}
}
