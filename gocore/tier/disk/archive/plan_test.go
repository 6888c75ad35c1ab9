package archive

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/bucket/buckettest"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/disk/segment"
)

// together is a push of ranks on several nodes: the first rank's process plans, and the ranks carry plans out. Messages of different pairs of ranks arrive in any order.
type together struct {
	t      fataler
	from   []Source
	nodes  []int
	fs     vfs.FS        // with the archive
	server bucket.Server // with it, instead; nil: it is a directory
	random *rand.Rand
	spoil  func(from, to int, p []byte) // changes messages on their way; nil: nothing does
	slow   map[int]time.Duration        // by rank: how much longer a write into the archive takes
	paces  Paces                        // that the last push has told
	before func(plan *Plan)             // is called before the ranks begin with a plan; nil: nothing is
}

// message is a piece of a copy on its way.
type message struct {
	copy  int
	at    int64
	p     []byte
	sum   uint64
	sound bool
}

func (g *together) push(o Options) (done Done, err error) {
	sources := slices.Clone(g.from)
	for i, of := range sources {
		if g.nodes[i] != g.nodes[0] { // the planning rank reads nothing of other nodes
			if sources[i].Metadata, err = Metadata(of.Store); err != nil {
				return done, &RankError{of.Rank, of.Store.Dir, err}
			}
		}
	}
	p, err := g.plans(sources, o)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	shares := map[int]*Share{}
	for i, of := range g.from {
		var near []Source
		for k, other := range g.from {
			if g.nodes[k] == g.nodes[i] {
				near = append(near, other)
			}
		}
		shares[of.Rank] = g.share(of.Rank, near)
		defer func() { err = errors.Join(err, shares[of.Rank].Close()) }()
	}
	for {
		plan, err := p.Plan(g.nodes)
		if err != nil || plan.Done {
			g.paces = p.Paces()
			return p.Done(), err
		}
		if g.before != nil {
			g.before(plan)
		}
		text, err := json.Marshal(plan)
		if err != nil {
			return done, err
		}
		reports, err := g.carryOut(shares, text)
		if err != nil {
			return done, err
		}
		if err := p.Land(reports); err != nil {
			return done, err
		}
	}
}

// plans begins the push in the planning process.
func (g *together) plans(sources []Source, o Options) (*Push, error) {
	if g.server != nil {
		return NewBucketPush(sources, inBucket(g.t, g.server), o)
	}
	return NewPush(sources, durable.Options{FS: g.fs, Dir: archiveDir}, o)
}

// share prepares the share of a rank, in its process.
func (g *together) share(rank int, near []Source) *Share {
	if g.server != nil {
		return NewBucketShare(rank, near, inBucket(g.t, g.server))
	}
	return NewShare(rank, near, durable.Options{FS: slowFS{g.fs, g.slow[rank]}, Dir: archiveDir})
}

// upload lets the ranks upload their packs, in any order.
func (g *together) upload(shares map[int]*Share) ([]Report, error) {
	ranks := slices.Sorted(maps.Keys(shares))
	g.random.Shuffle(len(ranks), func(i, k int) { ranks[i], ranks[k] = ranks[k], ranks[i] })
	for _, rank := range ranks {
		if err := shares[rank].Upload(2); err != nil {
			return nil, err
		}
	}
	return reported(shares)
}

// require compares the archive with what it must have.
func (g *together) require(want archived) {
	read := func() (archived, error) { return contents(g.fs) }
	if g.server != nil {
		read = func() (archived, error) { return bucketContents(g.server, g.t) }
	}
	if got, err := read(); err != nil || !sameContents(got, want) {
		g.t.Fatalf("the archive has\n%v\nand not\n%v: %v", got, want, err)
	}
}

func (g *together) carryOut(shares map[int]*Share, text []byte) (reports []Report, err error) {
	var plan Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, err
	}
	for _, s := range shares {
		var own Plan
		if err := errors.Join(json.Unmarshal(text, &own), s.Begin(&own)); err != nil {
			return nil, err
		}
	}
	if g.server != nil {
		return g.upload(shares)
	}
	type pair struct{ from, to int }
	sent := map[pair][]message{}
	var pairs []pair
	for number, c := range plan.Copies {
		way := pair{plan.Parts[c.Part].Reader, c.Leader}
		if way.from == way.to {
			for at, rest := int64(0), c.End-c.From; rest > 0; { // some of it at once
				n := min(rest, 128<<10)
				if err := shares[way.to].Copy(number, at, n); err != nil {
					return nil, err
				}
				at, rest = at+n, rest-n
			}
			continue
		}
		for at := int64(0); at < c.End-c.From; at += 64 << 10 {
			n := min(64<<10, c.End-c.From-at)
			buffer, err := memory.Map("test", n)
			if err != nil {
				return nil, err
			}
			defer func() { _ = buffer.Unmap() }()
			m := message{copy: number, at: at, p: buffer.Bytes(0, n)}
			if m.sum, m.sound, err = shares[way.from].Read(number, at, m.p); err != nil {
				return nil, err
			}
			if g.spoil != nil {
				g.spoil(way.from, way.to, m.p)
			}
			if sent[way] == nil {
				pairs = append(pairs, way)
			}
			sent[way] = append(sent[way], m)
		}
	}
	for len(pairs) > 0 {
		i := g.random.IntN(len(pairs))
		way := pairs[i]
		m := sent[way][0]
		if m.sound {
			c := plan.Copies[m.copy]
			if err := shares[way.to].Write(c.File, c.At+m.at, m.p, m.sum); err != nil {
				return nil, err
			}
		}
		if sent[way] = sent[way][1:]; len(sent[way]) == 0 {
			pairs = slices.Delete(pairs, i, i+1)
		}
	}
	return reported(shares)
}

// reported are the reports of all ranks.
func reported(shares map[int]*Share) (reports []Report, err error) {
	for _, rank := range slices.Sorted(maps.Keys(shares)) {
		report, err := shares[rank].End()
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}

func (r *run) together(nodes []int, seed uint64) *together {
	return &together{t: r.t, from: r.all(), nodes: nodes, fs: r.shared, random: rand.New(rand.NewPCG(seed, 1))}
}

// However ranks lie on nodes, a push of all of them leaves what a push by one process leaves, and a second one finds nothing to do. It is so in a directory and in a
// bucket.
func TestRanksOfSeveralNodesPushTogether(t *testing.T) {
	if underRace {
		few(t, "25")
	}
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(1, 6).Draw(t, "ranks")
		r := newRun(t, ranks)
		nodes := rapid.SliceOfN(rapid.IntRange(0, 3), ranks, ranks).Draw(t, "nodes")
		sizes := rapid.SampledFrom([]int64{0, 1, 4095, 4096, 4097, 100_000, 300_000})
		files := rapid.IntRange(1, 4).Draw(t, "files")
		server := storage(rapid.Bool().Draw(t, "bucket"))
		want := archived{}
		for version := range rapid.IntRange(1, 2).Draw(t, "rounds") {
			for range rapid.IntRange(1, 6).Draw(t, "keys") {
				at := place{"h", model.NumberKey(rapid.Int64Range(0, 3).Draw(t, "key"))}
				if rapid.Bool().Draw(t, "named") {
					at.key = model.TextKey(fmt.Sprint("key\xff", at.key.Number))
				}
				for rank := range ranks {
					if rapid.IntRange(0, 9).Draw(t, "lacks") > 0 {
						r.bare = rapid.Bool().Draw(t, "without checksums")
						r.put(rank, at, state{rank, version, sizes.Draw(t, "bytes")})
					}
				}
			}
			want = r.complete(want)
			g := r.together(nodes, rapid.Uint64().Draw(t, "seed"))
			g.server = server
			leaders := rapid.IntRange(0, 3).Draw(t, "leaders")
			if _, err := g.push(Options{Files: files, Leaders: leaders, packBytes: drawPackBytes(t)}); err != nil {
				t.Fatal(err)
			}
			g.require(want)
			done, err := g.push(Options{Files: files})
			if err != nil || done.Keys != 0 || done.Parts != 0 {
				t.Fatalf("a second push brings %+v: %v", done, err)
			}
			if server != nil {
				if _, err := CollectBucket(inBucket(t, server), 0, false); err != nil {
					t.Fatal(err)
				}
				g.require(want)
				continue
			}
			if got := len(dataFiles(t, r.shared)); got > files {
				t.Fatalf("there are %d files, of %d", got, files)
			}
		}
	})
}

// storage is an object store, if the archive is to be in one.
func storage(inBucket bool) bucket.Server {
	if inBucket {
		return buckettest.New()
	}
	return nil
}

// two is a run of two ranks on two nodes, with a key that both have.
func two(t *testing.T) (*run, *together) {
	r := newRun(t, 2)
	for rank := range 2 {
		for key := range int64(3) {
			r.put(rank, place{"h", model.NumberKey(key)}, state{rank, int(key), 200_000})
		}
	}
	return r, r.together([]int{0, 1}, 1)
}

// Bytes that were changed between two ranks never get into the archive.
func TestAMessageThatWasChanged(t *testing.T) {
	r, g := two(t)
	g.spoil = func(_, _ int, p []byte) { p[len(p)/2] ^= 1 }
	if _, err := g.push(Options{Files: 1, Leaders: 1}); !errors.Is(err, ErrSent) {
		t.Fatalf("the error is %v", err)
	}
	r.require(archived{})
	g.spoil = nil
	if _, err := g.push(Options{Files: 1, Leaders: 1}); err != nil {
		t.Fatal(err)
	}
	r.require(r.complete(nil))
}

// A checkpoint that its rank replaces after the catalogs were read is left out, and the others are brought.
func TestAPartThatIsReplacedWhileRanksPush(t *testing.T) {
	for _, bare := range []bool{false, true} {
		for _, inBucket := range []bool{false, true} {
			r, g := two(t)
			g.server = storage(inBucket)
			r.settle()
			r.bare = bare
			want := r.complete(nil)
			delete(want, place{"h", model.NumberKey(1)})
			g.before = func(*Plan) {
				g.before = nil
				r.put(1, place{"h", model.NumberKey(1)}, state{1, 77, 200_000})
				r.settle()
			}
			done, err := g.push(Options{Files: 2})
			if err != nil || done.Changed != 1 || done.Keys != 2 || !slices.Equal(done.Omitted, []Omission{{Name{"h", model.NumberKey(1)}, Changed}}) {
				t.Fatalf("%+v: %v", done, err)
			}
			g.require(want)
		}
	}
}

// Damage in the store of one rank leaves out the keys with it, and names it.
func TestDamageOnAnotherNode(t *testing.T) {
	for name, how := range map[string]*vfs.Rule{
		"other bytes":  {Flip: []int64{5}},
		"lost by disk": {Err: unix.EIO},
	} {
		for _, inBucket := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", in a bucket: ", inBucket), func(t *testing.T) { damageOnAnotherNode(t, how, storage(inBucket)) })
		}
	}
}

func damageOnAnotherNode(t *testing.T, how *vfs.Rule, server bucket.Server) {
	r, g := two(t)
	g.server = server
	view, err := durable.Read(r.store(1))
	if err != nil {
		t.Fatal(err)
	}
	front := view.InFile(catalog.Extent{})
	if err := view.Close(); err != nil {
		t.Fatal(err)
	}
	how.Ops, how.Name, how.From, how.To = vfs.OpRead, segment.FileName(1), front+250_000, front+300_000
	g.from[1].Store.FS = vfs.NewFaulty(r.nodes, how)
	done, err := g.push(Options{Files: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Damaged) != 1 || done.Damaged[0].Rank != 1 || done.Keys != 2 {
		t.Errorf("%+v", done)
	}
	want := r.complete(nil)
	delete(want, place{"h", done.Damaged[0].Key})
	g.require(want)
}

// On a node that does not see the archive, nothing is written, whatever has its name there.
func TestANodeThatDoesNotSeeTheArchive(t *testing.T) {
	r, _ := two(t)
	for name, other := range map[string]vfs.FS{"nothing": vfs.NewMem(1 << 30), "another archive": r.other()} {
		s := NewShare(1, r.sources(1), durable.Options{FS: other, Dir: archiveDir})
		plan := &Plan{Store: [16]byte{1}, Files: []FileLeader{{0, 1}}}
		if err := s.Begin(plan); !errors.Is(err, ErrOtherArchive) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// other is a file system with an archive of another run.
func (r *run) other() vfs.FS {
	fs := vfs.NewMem(1 << 40)
	if _, err := pushTo(fs, r.all(), Options{}); err != nil {
		r.t.Fatal(err)
	}
	return fs
}

// Nothing but its share is open to a rank: numbers and ranges that the plan does not give it are errors, and nothing is read or written.
func TestWhatIsNotInAShare(t *testing.T) {
	r, _ := two(t)
	s := NewShare(0, r.sources(0), durable.Options{FS: r.other(), Dir: archiveDir})
	defer func() { _ = s.Close() }()
	p := make([]byte, 4096)
	if _, _, err := s.Read(0, 0, p); !errors.Is(err, errShare) {
		t.Errorf("without a plan: %v", err)
	}
	view, err := durable.Read(r.store(0))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	plan := &Plan{Stores: []StoreIdentity{{0, view.About().Store}}, Parts: []PlannedPart{{Rank: 0, Reader: 0, History: []byte("h"), Serial: 1, Plain: true}, {Rank: 1, Reader: 1}}, Copies: []Transfer{{Part: 0, End: 8192}, {Part: 1, End: 8192}}}
	if err := s.Begin(plan); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"a part of another rank": second(s.Read(1, 0, p)),
		"no copy":                second(s.Read(2, 0, p)),
		"a negative number":      second(s.Read(-1, 0, p)),
		"before the copy":        second(s.Read(0, -1, p)),
		"behind the copy":        second(s.Read(0, 8192, p)),
		"a file of another rank": s.Write(3, 0, nil, 0x2d06800538d394c2),
		"a copy of another rank": s.Copy(1, 0, 4096),
		"a copy before its room": s.Copy(0, -4096, 4096),
		"a copy beyond its room": s.Copy(0, 4096, 8192),
		"a copy of nothing":      s.Copy(0, 0, 0),
	} {
		if !errors.Is(err, errShare) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := NewShare(0, nil, durable.Options{}).Begin(plan); !errors.Is(err, errShare) {
		t.Errorf("a store of another node: %v", err)
	}
}

func second(_ uint64, _ bool, err error) error { return err }

// A part that the archive has already, beside one without checksums that it lacks.
func TestAKnownPartBesideANewOneWithoutChecksums(t *testing.T) {
	r := newRun(t, 2)
	at := place{"h", model.NumberKey(0)}
	r.put(0, at, state{0, 0, 5000})
	r.bare = true
	r.put(1, at, state{1, 0, 5000})
	g := r.together([]int{0, 1}, 1)
	if _, err := g.push(Options{}); err != nil {
		t.Fatal(err)
	}
	r.put(1, at, state{1, 1, 5000})
	r.settle()
	done, err := g.push(Options{})
	if err != nil || done.Keys != 1 || len(done.Damaged) > 0 {
		t.Fatalf("%+v: %v", done, err)
	}
	r.require(r.complete(nil))
}

// Two containers of one host may have other stores under one path. A rank that reads for another one notices.
func TestAnotherStoreUnderThePathOfARank(t *testing.T) {
	r, g := two(t)
	g.from[0].Store.Dir = storeOf(1)
	plan := &Plan{Stores: []StoreIdentity{{0, [16]byte{1}}}, Parts: []PlannedPart{{Rank: 0, Reader: 1, History: []byte("h")}}}
	s := NewShare(1, g.from, durable.Options{FS: r.shared, Dir: archiveDir})
	if err := s.Begin(plan); !errors.Is(err, ErrOtherStore) {
		t.Errorf("the error is %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A rank that still writes when the process that has planned its writes is gone, and another one pushes, harms nothing.
func TestARankThatWritesBehindItsPlan(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		t.Run(fmt.Sprint("damaged ", damaged), func(t *testing.T) {
			r, g := two(t)
			if _, err := g.push(Options{Files: 2, Leaders: 1}); err != nil {
				t.Fatal(err)
			}
			for rank := range 2 {
				r.put(rank, place{"h", model.NumberKey(7)}, state{rank, 7, 200_000})
			}
			r.settle()
			to := durable.Options{FS: r.shared, Dir: archiveDir}
			p, err := NewPush(r.all(), to, Options{Leaders: 1})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := p.Plan([]int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			for i := range plan.Files {
				plan.Files[i].Leader = 0
			}
			late := NewShare(0, r.all(), to)
			defer func() { _ = late.Close() }()
			if err := errors.Join(late.Begin(plan), p.Close()); err != nil {
				t.Fatal(err)
			}
			if damaged {
				for _, name := range reservedNames {
					file, err := r.shared.Open(archiveDir+"/"+name, true, false)
					if errors.Is(err, unix.ENOENT) {
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					if _, err := file.WriteAt([]byte{0xff}, 20); err != nil {
						t.Fatal(err)
					}
				}
				for _, c := range plan.Copies { // the leader has written a part of it
					if err := late.write(c.File, c.At, make([]byte, c.End-c.From)); err != nil {
						t.Fatal(err)
					}
				}
				if done, err := g.push(Options{Files: 1}); err != nil || done.Keys != 1 { // into one file of two
					t.Fatalf("%+v: %v", done, err)
				}
				for rank := range 2 {
					r.put(rank, place{"h", model.NumberKey(8)}, state{rank, 8, 200_000})
				}
				r.settle()
			}
			done, err := g.push(Options{Files: 2})
			if err != nil || done.Keys != 1 {
				t.Fatalf("%+v: %v", done, err)
			}
			for _, c := range plan.Copies {
				if err := late.write(c.File, c.At, make([]byte, c.End-c.From)); err != nil {
					t.Fatal(err)
				}
			}
			r.require(r.complete(nil))
		})
	}
}

// What is recorded comes back, and nothing else does.
func TestRecordsOfReservedRoom(t *testing.T) {
	fs := vfs.NewMem(1 << 30)
	if err := fs.MkdirAll(archiveDir); err != nil {
		t.Fatal(err)
	}
	record := &reservation{fs: fs, dir: archiveDir}
	if ends, known, err := record.read(); len(ends) > 0 || !known || err != nil {
		t.Errorf("no record: %v %v %v", ends, known, err)
	}
	for _, want := range [][]int64{{1, 2, 3}, {5}, nil, {1 << 60, 4096}} {
		if err := record.write(want); err != nil {
			t.Fatal(err)
		}
		if got, known, err := record.read(); !slices.Equal(got, want) || !known || err != nil {
			t.Errorf("%v came back as %v %v %v", want, got, known, err)
		}
	}
	// The latest record is damaged: its writer has died, and the one before counts. Both are: nothing is known.
	before := []int64{5}
	for _, ends := range [][]int64{{4}, before, {1 << 60, 4096}} {
		if err := record.write(ends); err != nil {
			t.Fatal(err)
		}
	}
	latest := archiveDir + "/" + reservedNames[record.number%2]
	for at := range int64(reservedFront + 2*8 + 8) { // every byte of it
		flip(t, fs, latest, at)
		again := reservation{fs: fs, dir: archiveDir}
		if got, known, err := again.read(); !slices.Equal(got, before) || !known || err != nil {
			t.Errorf("with a damaged byte %d: %v %v %v", at, got, known, err)
		}
		flip(t, fs, latest, at)
	}
	flip(t, fs, latest, 30)
	flip(t, fs, archiveDir+"/"+reservedNames[(record.number+1)%2], 30)
	if got, known, err := record.read(); known || err != nil {
		t.Errorf("both are damaged: %v %v %v", got, known, err)
	}
}

// flip inverts a bit of a file.
func flip(t *testing.T, fs vfs.FS, name string, at int64) {
	t.Helper()
	file, err := fs.Open(name, true, false)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 1)
	_, read := file.ReadAt(p, at)
	p[0] ^= 1
	_, written := file.WriteAt(p, at)
	if err := errors.Join(read, written, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// What a leader has written is on the medium before it reports: the planning process commits keys by that, and a sync of another node does nothing for it.
func TestALeaderSyncsBeforeItReports(t *testing.T) {
	r, _ := two(t)
	to := durable.Options{FS: r.shared, Dir: archiveDir}
	p, err := NewPush(r.all(), to, Options{Leaders: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	plan, err := p.Plan([]int{0, 0})
	if err != nil {
		t.Fatal(err)
	}
	counted := vfs.NewFaulty(r.shared)
	s := NewShare(0, r.all(), durable.Options{FS: counted, Dir: archiveDir})
	defer func() { _ = s.Close() }()
	if err := s.Begin(plan); err != nil {
		t.Fatal(err)
	}
	for number, c := range plan.Copies {
		if err := s.Copy(number, 0, c.End-c.From); err != nil {
			t.Fatal(err)
		}
	}
	if n := counted.Calls(vfs.OpSync); n != 0 {
		t.Fatalf("%d syncs before the end", n)
	}
	if _, err := s.End(); err != nil || counted.Calls(vfs.OpSync) != int64(len(plan.Files)) {
		t.Fatalf("%d syncs of %d files: %v", counted.Calls(vfs.OpSync), len(plan.Files), err)
	}
	counted.Add(&vfs.Rule{Ops: vfs.OpSync, Err: unix.EIO})
	if err := s.Begin(plan); err != nil {
		t.Fatal(err)
	}
	if err := s.Copy(0, 0, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := s.End(); !errors.Is(err, unix.EIO) {
		t.Errorf("a sync has failed, and the report says %v", err)
	}
}

// What each node writes begins at a multiple of the stripe in its file, also behind an earlier push, and so does what one process writes.
func TestWhereStripesBegin(t *testing.T) {
	for _, stripe := range []int64{0, 64 << 10, 1 << 20} {
		length := cmp.Or(stripe, aggregation.Stripe)
		r := newRun(t, 4)
		nodes := []int{3, 3, 5, 7}
		for version := range 2 {
			for rank := range 4 {
				r.put(rank, place{"h", model.NumberKey(int64(version))}, state{rank, version, length + int64(rank)*5000})
			}
			g := r.together(nodes, 1)
			plans := 0
			g.before = func(plan *Plan) {
				plans++
				first := map[int]int64{} // by node: where its bytes begin in the file
				for _, c := range plan.Copies {
					at, node := plan.Front+c.At-c.File*plan.Bytes, nodes[plan.Parts[c.Part].Rank]
					if begin, has := first[node]; !has || at < begin {
						first[node] = at
					}
				}
				for node, at := range first {
					if at%length != 0 {
						t.Errorf("stripes of %d: the bytes of node %d begin at %d", stripe, node, at)
					}
				}
			}
			if _, err := g.push(Options{Files: 1, Stripe: stripe}); err != nil || plans != 1 {
				t.Fatalf("%d plans: %v", plans, err)
			}
		}
		r.require(r.complete(nil))
		alone := vfs.NewMem(1 << 40)
		if _, err := pushTo(alone, r.all(), Options{Stripe: stripe}); err != nil {
			t.Fatal(err)
		}
		view, err := durable.Read(durable.Options{FS: alone, Dir: archiveDir})
		if err != nil {
			t.Fatal(err)
		}
		lowest := int64(math.MaxInt64)
		for _, h := range view.State().Histories() {
			view.State().EachKey(h.ID, func(key model.Key, _ uint64) bool {
				row, _ := view.State().Find(h.ID, key)
				rooms, bad := view.Rooms(&row)
				if bad != nil {
					t.Fatal(bad)
				}
				lowest = min(lowest, rooms[0].From)
				return true
			})
		}
		if at := view.InFile(catalog.Extent{}) + lowest; at%length != 0 {
			t.Errorf("stripes of %d: a push by one process begins at %d", stripe, at)
		}
		if err := view.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
