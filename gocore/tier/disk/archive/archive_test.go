package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
)

const archiveDir = "/archive"

// state is a version of a rank's checkpoint: its bytes follow from it.
type state struct {
	rank, version int
	bytes         int64
}

func (s state) content() []byte {
	p := make([]byte, s.bytes)
	r := rand.NewPCG(uint64(s.rank), uint64(s.version))
	for i := range p {
		p[i] = byte(r.Uint64())
	}
	return p
}

// meta is long: the rows of one key have more bytes than a batch of the catalog has by itself.
func (s state) meta() string { return fmt.Sprintf("%*d", 9000, s.version) }

func (s state) row(key model.Key) *catalog.Row {
	p := s.content()
	l := model.Layout{Slot: s.bytes, Spans: []model.Span{{Bytes: s.bytes}}, Text: fmt.Sprint(s.bytes, " bytes")}
	return &catalog.Row{Key: key, Layout: &catalog.Layout{Layout: l}, Align: 64, Time: int64(s.version + 1), Sums: []uint64{checksum.Sum(p)}, Meta: s.meta()}
}

type place struct {
	history string
	key     model.Key
}

// run is a run of ranks: what each has, and the disks with their stores and with the archive.
type run struct {
	t      fataler
	nodes  *vfs.Mem
	shared *vfs.Mem
	has    []map[place]state
	bare   bool                                                        // rows have no checksums
	late   map[int][]func(d *durable.Dir, room finder) *durable.Change // changes that the ranks' stores have not got yet
}

type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func newRun(t fataler, ranks int) *run {
	r := &run{t: t, nodes: vfs.NewMem(1 << 30), shared: vfs.NewMem(1 << 40), late: map[int][]func(*durable.Dir, finder) *durable.Change{}}
	for rank := range ranks {
		r.has = append(r.has, map[place]state{})
		r.change(rank, func(*durable.Dir, finder) *durable.Change { return &durable.Change{Clarify: true} })
	}
	return r
}

func storeOf(rank int) string { return fmt.Sprint("/rank", rank) }

func (r *run) store(rank int) durable.Options {
	return durable.Options{FS: r.nodes, Dir: storeOf(rank), Capacity: 1 << 28, SegmentBytes: 1 << 20}
}

// put replaces a rank's checkpoint of a key.
func (r *run) put(rank int, at place, s state) {
	r.t.Helper()
	r.has[rank][at] = s
	r.change(rank, func(d *durable.Dir, room finder) *durable.Change {
		put := s.row(at.key)
		put.Serial = d.State().MaxSerial() + 1
		if r.bare {
			put.Sums = nil
		}
		off := room(put.Bytes())
		padded := make([]byte, (s.bytes+4095)/4096*4096)
		copy(padded, s.content())
		if err := d.Space().Write(off, padded); err != nil {
			r.t.Fatal(err)
		}
		return &durable.Change{History: at.history, Put: put, Off: off}
	})
}

func (r *run) drop(rank int, at place) {
	r.t.Helper()
	delete(r.has[rank], at)
	r.change(rank, func(d *durable.Dir, _ finder) *durable.Change {
		return &durable.Change{History: at.history, Key: at.key, Serial: d.State().MaxSerial(), Drop: true}
	})
}

// change commits a change in the store of a rank, when the stores are read next.
func (r *run) change(rank int, make func(d *durable.Dir, room finder) *durable.Change) {
	r.late[rank] = append(r.late[rank], make)
}

// settle commits the changes. Bytes are written to the first room that nothing uses.
func (r *run) settle() {
	r.t.Helper()
	for rank, changes := range r.late {
		d, err := durable.Open(r.store(rank))
		if err != nil {
			r.t.Fatal(err)
		}
		used := map[int64]bool{} // blocks
		for from, end := range d.Occupied() {
			for ; from < end; from += 4096 {
				used[from] = true
			}
		}
		for _, make := range changes {
			c := make(d, func(bytes int64) int64 { return firstGap(used, bytes) })
			d.Commit(c)
			if err := errors.Join(d.Sync(), c.Err); err != nil {
				r.t.Fatal(err)
			}
			if c.Put != nil {
				for at := c.Off; at < c.Off+c.Put.Bytes(); at += 4096 {
					used[at] = true
				}
			}
		}
		if err := d.Close(); err != nil {
			r.t.Fatal(err)
		}
	}
	clear(r.late)
}

// finder returns where so many bytes are free.
type finder func(bytes int64) int64

// firstGap is where the first so many bytes are free.
func firstGap(used map[int64]bool, bytes int64) (off int64) {
	for at := int64(0); at < off+bytes; at += 4096 {
		if used[at] {
			off = at + 4096
		}
	}
	return off
}

func (r *run) sources(ranks ...int) (all []Source) {
	r.settle()
	for _, n := range ranks {
		all = append(all, Source{Rank: n, Store: r.store(n)})
	}
	return all
}

func (r *run) all() []Source {
	all := make([]int, len(r.has))
	for i := range all {
		all[i] = i
	}
	return r.sources(all...)
}

func pushTo(fs vfs.FS, from []Source, o Options) (Done, error) {
	p, err := NewPush(from, durable.Options{FS: fs, Dir: archiveDir}, o)
	if err != nil {
		return Done{}, err
	}
	_, err = p.Step(func() bool { return false })
	return p.Done(), errors.Join(err, p.Close())
}

func (r *run) push(o Options) Done {
	r.t.Helper()
	done, err := pushTo(r.shared, r.all(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	return done
}

// archived is what an archive has: the versions of the ranks' parts of each complete key.
type archived map[place]map[int]state

// contents reads an archive, and compares every part with its bytes and each list of ranks with the parts.
func contents(fs vfs.FS) (archived, error) {
	view, err := durable.Read(durable.Options{FS: fs, Dir: archiveDir})
	if err != nil {
		return nil, err
	}
	defer func() { _ = view.Close() }()
	return contentsOf(view)
}

// contentsOf is contents of an archive that is open.
func contentsOf(view *durable.View) (archived, error) {
	all, lists := archived{}, map[place][]int{}
	for _, h := range view.State().Histories() {
		rank, of, isPart := ParsePartName(h.Name)
		var bad error
		view.State().Each(h.ID, func(row catalog.Row) bool {
			off, _, err := view.Place(&row)
			p := make([]byte, row.Layout.Slot)
			if err == nil && len(p) > 0 {
				err = view.Space().Read(off, p)
			}
			if bad = err; err != nil {
				return false
			}
			if !isPart {
				at := place{h.Name, row.Key}
				for ; len(p) > 0; p = p[8:] {
					lists[at] = append(lists[at], int(binary.LittleEndian.Uint64(p)))
				}
				return true
			}
			s := state{rank, int(row.Time) - 1, row.Layout.Slot}
			if !bytes.Equal(p, s.content()) || row.Meta != s.meta() {
				bad = fmt.Errorf("%s/%s has other bytes", h.Name, row.Key)
			}
			at := place{of, row.Key}
			if all[at] == nil {
				all[at] = map[int]state{}
			}
			all[at][rank] = s
			return bad == nil
		})
		if bad != nil {
			return nil, bad
		}
	}
	if len(lists) != len(all) {
		return nil, fmt.Errorf("%d keys are complete, and %d have parts", len(lists), len(all))
	}
	for at, list := range lists {
		for _, n := range list {
			if _, ok := all[at][n]; !ok || len(list) != len(all[at]) || !slices.IsSorted(list) {
				return nil, fmt.Errorf("%v lists the ranks %v, and has the parts %v", at, list, all[at])
			}
		}
	}
	return all, nil
}

// complete is what an archive has to have when all keys of the ranks have been brought that each of them has. A key of which these have the parts that the archive
// has, as a run of fewer ranks does that goes on with their stores, keeps the parts of all others.
func (r *run) complete(before archived) archived {
	all := archived{}
	for at, parts := range before {
		all[at] = parts
	}
	for at := range r.has[0] {
		parts := map[int]state{}
		for rank, has := range r.has {
			if s, ok := has[at]; ok {
				parts[rank] = s
			}
		}
		same := len(before[at]) > 0
		for rank, s := range parts {
			had, ok := before[at][rank]
			same = same && ok && had == s
		}
		if len(parts) == len(r.has) && !same {
			all[at] = parts
		}
	}
	return all
}

// few lets properties be checked so many times until the test ends.
func few(t *testing.T, checks string) {
	t.Helper()
	usual := flag.Lookup("rapid.checks").Value.String()
	if err := flag.Set("rapid.checks", checks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", usual) })
}

func sameContents(a, b archived) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func (r *run) require(want archived) {
	r.t.Helper()
	got, err := contents(r.shared)
	if err != nil {
		r.t.Fatal(err)
	}
	if !sameContents(got, want) {
		r.t.Fatalf("the archive has\n%v\nand should have\n%v", got, want)
	}
}

func dataFiles(t fataler, fs vfs.FS) (names []string) {
	all, err := fs.List(archiveDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if strings.HasPrefix(name, "data-") {
			names = append(names, name)
		}
	}
	return names
}

// Whatever ranks have put, replaced and dropped, each push leaves the newest versions of all keys that every rank has, in exactly as many files as asked for; what
// was complete before and is dropped later stays. A second push finds nothing to do.
func TestAnArchiveHasWhatAllRanksHave(t *testing.T) {
	if underRace { // a check takes ten times as long
		few(t, "25")
	}
	rapid.Check(t, func(t *rapid.T) {
		most := 3 // rounds
		if underRace {
			most = 1
		}
		ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
		r := newRun(t, ranks)
		sizes := rapid.SampledFrom([]int64{0, 1, 8, 4095, 4096, 4097, 100_000})
		want := archived{}
		for version := range rapid.IntRange(1, most).Draw(t, "rounds") {
			for range rapid.IntRange(1, 6).Draw(t, "keys") {
				key := model.NumberKey(rapid.Int64Range(0, 3).Draw(t, "key"))
				if rapid.Bool().Draw(t, "text") {
					key = model.TextKey(fmt.Sprint(key.Number))
				}
				at := place{rapid.SampledFrom([]string{"forward", "rank 3", "x/y"}).Draw(t, "history"), key}
				for rank := range ranks {
					switch rapid.IntRange(0, 9).Draw(t, "what") {
					case 0:
						if _, ok := r.has[rank][at]; ok {
							r.drop(rank, at)
						}
					default:
						r.put(rank, at, state{rank, version, sizes.Draw(t, "bytes")})
					}
				}
			}
			o := Options{Files: rapid.IntRange(0, 4).Draw(t, "files"), Writers: rapid.IntRange(0, 3).Draw(t, "writers")}
			before := 0
			if version > 0 {
				before = len(dataFiles(t, r.shared))
			}
			done := r.push(o)
			want = r.complete(want)
			r.require(want)
			again := r.push(o)
			if again.Keys != 0 || again.Bytes != 0 || again.Known != done.Keys+done.Known || again.Incomplete != done.Incomplete {
				t.Fatalf("a push did %+v, and one behind it %+v", done, again)
			}
			if n := len(dataFiles(t, r.shared)); n > max(before, o.Files, 1) || done.Files > n {
				t.Fatalf("%d files, before there were %d, and the push %+v did %+v", n, before, o, done)
			}
		}
	})
}

// With ranks enough, and bytes of each, there are exactly as many files as asked for, of nearly the same size.
func TestThereAreAsManyFilesAsAskedFor(t *testing.T) {
	for _, files := range []int{1, 2, 3, 6} {
		r := newRun(t, 6)
		for rank := range r.has {
			for key := range 3 {
				r.put(rank, place{"forward", model.NumberKey(int64(key))}, state{rank, 0, int64(100_000 + 1000*rank)})
			}
		}
		done := r.push(Options{Files: files})
		if n := len(dataFiles(t, r.shared)); n != files || done.Files != files || done.Keys != 3 || done.Parts != 18 {
			t.Errorf("%d files where %d were asked for: %+v", n, files, done)
		}
		r.require(r.complete(nil))
	}
}

// A run of other ranks replaces the parts of a key: those of ranks that it has not are gone.
func TestARunOfFewerRanks(t *testing.T) {
	r := newRun(t, 4)
	first, second := place{"forward", model.NumberKey(1)}, place{"forward", model.NumberKey(2)}
	for rank := range 4 {
		r.put(rank, first, state{rank, 0, 5000})
		r.put(rank, second, state{rank, 0, 5000})
	}
	r.push(Options{Files: 2})
	was := r.complete(nil)
	r.nodes, r.has = vfs.NewMem(1<<30), r.has[:2]
	for rank := range 2 {
		clear(r.has[rank])
		r.put(rank, second, state{rank, 1, 9000})
	}
	done := r.push(Options{})
	was[second] = map[int]state{0: {0, 1, 9000}, 1: {1, 1, 9000}}
	r.require(was)
	if done.Keys != 1 || done.Files != 2 {
		t.Errorf("%+v", done)
	}
}

// Checkpoints without checksums are told by the time of their capture: a second push brings none of them again.
func TestCheckpointsWithoutChecksums(t *testing.T) {
	r := newRun(t, 2)
	r.bare = true
	first, second := place{"forward", model.NumberKey(1)}, place{"forward", model.NumberKey(2)}
	for rank := range 2 {
		r.put(rank, first, state{rank, 0, 5000})
		r.put(rank, second, state{rank, 0, 0})
	}
	if done := r.push(Options{}); done.Keys != 2 {
		t.Errorf("%+v", done)
	}
	r.require(r.complete(nil))
	if done := r.push(Options{}); done.Known != 2 || done.Bytes != 0 {
		t.Errorf("%+v", done)
	}
	r.put(1, first, state{1, 3, 5000})
	if done := r.push(Options{}); done.Known != 1 || done.Keys != 1 || done.Parts != 1 {
		t.Errorf("%+v", done)
	}
	r.require(r.complete(nil))
}

// Keys that not all ranks have are left out, or brought if wanted.
func TestPartialKeys(t *testing.T) {
	r := newRun(t, 3)
	at := place{"forward", model.NumberKey(7)}
	r.put(0, at, state{0, 0, 10})
	r.put(2, at, state{2, 0, 10})
	r.put(1, place{"other", model.NumberKey(7)}, state{1, 0, 10})
	done := r.push(Options{})
	slices.SortFunc(done.Omitted, func(a, b Omission) int { return strings.Compare(a.History, b.History) })
	if done.Keys != 0 || done.Incomplete != 2 || !slices.Equal(done.Omitted, []Omission{{Name{"forward", at.key}, Incomplete}, {Name{"other", at.key}, Incomplete}}) {
		t.Errorf("%+v", done)
	}
	r.require(archived{})
	if done := r.push(Options{Partial: true, Histories: []string{"forward"}}); done.Keys != 1 || done.Incomplete != 0 || done.Omitted != nil {
		t.Errorf("%+v", done)
	}
	r.require(archived{at: {0: {0, 0, 10}, 2: {2, 0, 10}}})
}

// What is no archive is refused, and stays as it is.
func TestBadPushes(t *testing.T) {
	r := newRun(t, 2)
	at := place{"forward", model.NumberKey(1)}
	r.put(0, at, state{0, 0, 10})
	r.put(1, at, state{1, 0, 10})
	if _, err := NewPush(r.sources(0), durable.Options{FS: r.nodes, Dir: storeOf(1)}, Options{}); !errors.Is(err, ErrNoArchive) {
		t.Errorf("the store of a rank: %v", err)
	}
	if _, err := pushTo(r.shared, append(r.all(), Source{Rank: 2, Store: r.store(2)}), Options{}); !errors.Is(err, durable.ErrNoStore) || !strings.Contains(err.Error(), "rank 2") {
		t.Errorf("a rank without a store: %v", err)
	}
	for _, files := range []int{-1, MostFiles + 1} {
		if _, err := pushTo(r.shared, r.all(), Options{Files: files}); !errors.Is(err, ErrFiles) {
			t.Errorf("%d files: %v", files, err)
		}
	}
	if _, err := r.shared.List(archiveDir); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a push that was refused has made an archive: %v", err)
	}
	r.put(0, place{"rank 0/x", model.NumberKey(1)}, state{0, 0, 10})
	if _, err := pushTo(r.shared, r.all(), Options{}); !errors.Is(err, ErrName) {
		t.Errorf("a history named as one of parts: %v", err)
	}
	held, err := durable.Open(durable.Options{FS: r.shared, Dir: archiveDir, SegmentBytes: segmentBytes})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pushTo(r.shared, r.sources(1), Options{}); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("an archive that is written to: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
}

// Of stores that cannot be opened, whichever goroutine notices it first, the error is that of the lowest rank; and those that were opened are closed.
func TestStoresThatCannotBeOpened(t *testing.T) {
	const ranks = 40
	r := newRun(t, ranks)
	for rank := range ranks {
		r.put(rank, place{"h", model.NumberKey(0)}, state{rank, 0, 10})
	}
	r.settle()
	open := r.nodes.OpenFiles()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		from, lowest := r.all(), ranks
		for range 1 + random.IntN(5) {
			bad := random.IntN(ranks)
			lowest = min(lowest, bad)
			switch of := &from[bad]; random.IntN(3) {
			case 0:
				of.Store.Dir = "/nothing"
			case 1:
				of.Metadata = []byte("no recording")
			default:
				of.Store.FS = vfs.NewFaulty(r.nodes, &vfs.Rule{Ops: vfs.OpRead, Err: unix.EACCES})
			}
		}
		random.Shuffle(ranks, func(i, k int) { from[i], from[k] = from[k], from[i] })
		_, err := NewPush(from, durable.Options{FS: r.shared, Dir: archiveDir}, Options{Writers: 1 + random.IntN(8)})
		var of *RankError
		if !errors.As(err, &of) || of.Rank != lowest || strings.Count(err.Error(), "rank ") != 1 {
			t.Fatalf("seed %d: rank %d is the lowest, and the error is %v", seed, lowest, err)
		}
		if got := r.nodes.OpenFiles(); got != open {
			t.Fatalf("seed %d: %d files stay open", seed, got-open)
		}
	}
	if _, err := r.shared.List(archiveDir); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a push that could not begin has made an archive: %v", err)
	}
}

// The names of histories of parts are told from all others.
func TestPartNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rank, history := rapid.IntRange(0, 1<<30).Draw(t, "rank"), rapid.String().Draw(t, "history")
		gotRank, gotHistory, ok := ParsePartName(PartName(rank, history))
		if !ok || gotRank != rank || gotHistory != history {
			t.Fatalf("%d, %q: %d, %q, %v", rank, history, gotRank, gotHistory, ok)
		}
	})
	for _, name := range []string{"", "rank", "rank 1", "rank -1/x", "rank 01/x", "rank +1/x", "rank x/y", "rank 1 /x", "Rank 1/x", "rank 99999999999999999999/x"} {
		if _, _, ok := ParsePartName(name); ok {
			t.Errorf("%q passes", name)
		}
	}
}
