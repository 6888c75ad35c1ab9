package archive

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/aggregation"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/disk/segment"
)

// A push of ranks on several nodes goes by plans. One process makes them: it knows the catalogs of all stores, and commits. Every rank carries out its share of a plan:
// what it has to read, to send, to receive and to write (share.go). Reports say what came of it.

// Plan says which bytes of which stores go where. Every rank has the same plan.
type Plan struct {
	Done   bool            `json:"done"`   // nothing is left to be brought
	Store  [16]byte        `json:"store"`  // of the archive
	Stores []StoreIdentity `json:"stores"` // of the ranks
	Front  int64           `json:"front"`  // where the bytes of a segment begin in its file
	Bytes  int64           `json:"bytes"`  // of a segment
	Files  []FileLeader    `json:"files"`  // those that get something
	Parts  []PlannedPart   `json:"parts"`  // by their numbers in the plan
	Copies []Transfer      `json:"copies"` // of one file in the order of their places
	Packs  []PlannedPack   `json:"packs"`  // of an archive in a bucket: what each node uploads
}

// StoreIdentity is the identity of a rank's store. Another one may lie under its path on another node, or in another container of one.
type StoreIdentity struct {
	Rank  int      `json:"rank"`
	Store [16]byte `json:"store"`
}

// FileLeader is a file and a rank that writes into it.
type FileLeader struct {
	File   int64 `json:"file"`
	Leader int   `json:"leader"`
}

// PlannedPart is a part of a key that is to be brought. There need not be a copy of it.
type PlannedPart struct {
	Rank    int    `json:"rank"`
	Reader  int    `json:"reader"` // the rank that reads it: the one that writes it if the store lies on that one's node, and else the rank itself, which sends it
	History []byte `json:"history"`
	Key     int64  `json:"key"`
	Text    []byte `json:"text"` // instead of a number; null: the key is one
	Serial  uint64 `json:"serial"`
	Known   bool   `json:"known"` // the archive has it: only whether the store still has this version is looked at
	Plain   bool   `json:"plain"` // the rank that reads it compares it with its checksums
}

// Transfer is a range of the space of a rank's store, and its place in the archive's.
type Transfer struct {
	Part   int   `json:"part"`
	File   int64 `json:"file"`
	Leader int   `json:"leader"` // the rank that writes it
	From   int64 `json:"from"`
	End    int64 `json:"end"`
	At     int64 `json:"at"`
}

// PlannedPack is a pack and the rank that uploads it. It has the plan's copies into its file, one behind the other.
type PlannedPack struct {
	bucket.Pack
	Leader int `json:"leader"`
}

// Report is what came of the parts that one rank has read. Numbers are those of the plan's parts.
type Report struct {
	Wrong  []int    `json:"wrong"`  // the bytes are not those of the checksums, or cannot be read
	Gone   []int    `json:"gone"`   // the store does not have the version any more
	Failed []Failed `json:"failed"` // reading has failed in another way

	Wrote   int64   `json:"wrote"`   // bytes that it has written into the files that it leads
	Writing float64 `json:"writing"` // seconds in which at least one of these writes was under way
	Syncing float64 `json:"syncing"` // seconds in which the files were synced behind them

	Packs    []bucket.Pack `json:"packs"`    // that it has uploaded
	Conflict bool          `json:"conflict"` // another process has collected what the rank was uploading
	Costs    bucket.Costs  `json:"costs"`    // of what it has uploaded
}

// Failed is why a part could not be read.
type Failed struct {
	Part int    `json:"part"`
	Why  string `json:"why"`
}

func (m *PlannedPart) key() model.Key {
	if m.Text != nil {
		return model.TextKey(string(m.Text))
	}
	return model.NumberKey(m.Key)
}

// planned is a plan that is being carried out.
type planned struct {
	batch  []*task
	parts  []*part // by their numbers in the plan
	copies []piece
	nodes  []int // the numbers of the ranks' nodes, by ranks

	// In a bucket: the packs of the plan and a last one, the changes that commit the lists of the keys' ranks, and the bytes of these, which the last pack has.
	packs   []*bucket.Pack
	lists   []*durable.Change
	numbers []byte
}

var (
	errPlanned   = errors.New("a plan is under way already")
	errUnplanned = errors.New("a report without a plan")
)

// Plan plans what is to be brought next. nodes are the numbers of the ranks' nodes, by ranks ascending.
func (p *Push) Plan(nodes []int) (*Plan, error) {
	if p.under != nil {
		return nil, errPlanned
	}
	if len(nodes) != len(p.ranks) {
		return nil, fmt.Errorf("%d nodes of %d ranks", len(nodes), len(p.ranks))
	}
	x := newPlanning(p, nodes)
	for x.plan.Done && len(p.queue) > 0 {
		batch, err := p.next(x.filledAtOnce())
		if err != nil {
			return nil, err
		}
		if len(batch) == 0 {
			continue // the archive has these keys
		}
		x.plan.Done = false
		if err := x.begin(batch); err != nil {
			return nil, err
		}
	}
	return x.plan, nil
}

// planning is a plan that is being made.
type planning struct {
	push  *Push
	plan  *Plan
	nodes []int
}

// newPlanning begins with a plan of nothing.
func newPlanning(p *Push, nodes []int) *planning {
	plan := &Plan{Done: true, Bytes: segmentBytes}
	if p.bucket != nil {
		plan.Store, plan.Bytes = p.bucket.view.About().Store, bucket.SegmentBytes
	} else {
		plan.Store, plan.Front = p.to.Store(), p.to.InFile(catalog.Extent{})
	}
	for _, r := range p.ranks {
		plan.Stores = append(plan.Stores, StoreIdentity{r.number, r.from.About().Store})
	}
	return &planning{p, plan, nodes}
}

// begin fills the plan with what a batch needs, which is under way then.
func (x *planning) begin(batch []*task) error {
	p := x.push
	if p.bucket != nil {
		p.under = &planned{batch: batch}
		return p.bucket.list(x)
	}
	if err := p.place(batch, x.nodes); err != nil {
		return err
	}
	p.under = &planned{batch: batch, nodes: x.nodes}
	return x.list()
}

// filledAtOnce is how many files a plan fills, or, in a bucket, for how many nodes it fills packs.
func (x *planning) filledAtOnce() int {
	if x.push.bucket == nil {
		return len(x.push.ends)
	}
	return len(slices.Compact(slices.Sorted(slices.Values(x.nodes))))
}

// number numbers the parts of the batch under way, and returns their numbers, and the places of ranks in Push.ranks.
func (x *planning) number() (numbers map[*part]int, places map[*rank]int) {
	numbers, places = map[*part]int{}, map[*rank]int{}
	under := x.push.under
	for _, t := range under.batch {
		for _, of := range t.parts {
			numbers[of] = len(x.plan.Parts)
			under.parts = append(under.parts, of)
			x.plan.Parts = append(x.plan.Parts, of.moved(t))
		}
	}
	for i, r := range x.push.ranks {
		places[r] = i
	}
	return numbers, places
}

// list fills the plan with what the batch under way needs, makes the files that others will write, and records their room.
func (x *planning) list() error {
	p, plan, nodes := x.push, x.plan, x.nodes
	p.under.copies = pieces(p.under.batch, segmentBytes) // whole rooms: every rank has the whole plan, and cuts its own share
	numbers, places := x.number()
	groups := map[int64]*aggregation.Group{} // by file
	for _, c := range p.under.copies {
		g := groups[c.file]
		if g == nil {
			g = &aggregation.Group{First: places[c.of.of]}
			groups[c.file] = g
		}
		g.Add(places[c.of.of], c.end-c.from)
	}
	files := slices.Sorted(maps.Keys(groups))
	writers := x.elect(files, groups)
	if err := makeFiles(p, files); err != nil {
		return err
	}
	for _, c := range p.under.copies {
		from := places[c.of.of]
		writer := writers[c.file][from-groups[c.file].First]
		plan.Parts[numbers[c.of]].Reader = p.ranks[aggregation.Reader(from, writer, nodes)].number
		plan.Copies = append(plan.Copies, Transfer{numbers[c.of], c.file, p.ranks[writer].number, c.from, c.end, c.at})
	}
	return p.reserve()
}

// makeFiles makes files of the archive, with their heads on the medium: other nodes read them as soon as they have the plan. Goroutines that wait for a sync need no
// processor, so there are more of them than writers. One sync of the directory brings all names.
func makeFiles(p *Push, files []int64) error {
	err := workers(aggregation.FilesAtOnce, len(files), func(mine iter.Seq[int]) error {
		for i := range mine {
			if err := errors.Join(p.to.Space().Make(files[i]), p.to.Space().SyncBytes(files[i])); err != nil {
				return fmt.Errorf("%s: %w", segment.FileName(uint64(files[i])+1), err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.to.Space().SyncNames(files...)
}

// elect elects the leaders of files, and says by files and ranks which rank writes what each rank has.
func (x *planning) elect(files []int64, groups map[int64]*aggregation.Group) map[int64][]int {
	p := x.push
	all := make([]aggregation.Group, len(files))
	for i, file := range files {
		all[i] = *groups[file]
	}
	most := cmp.Or(p.o.Leaders, aggregation.DefaultLeaders(x.nodes, len(p.ends)))
	of, leads := aggregation.Writers(all, x.nodes, most, p.o.Paces.Slow(), p.o.Leaders > 0)
	for _, lead := range leads {
		x.plan.Files = append(x.plan.Files, FileLeader{files[lead.File], p.ranks[lead.Rank].number})
	}
	writers := map[int64][]int{}
	for i, file := range files {
		writers[file] = of[i]
	}
	return writers
}

func (x *part) moved(t *task) PlannedPart {
	m := PlannedPart{Rank: x.of.number, Reader: x.of.number, History: []byte(t.history), Key: t.key.Number, Serial: x.row.Serial, Known: x.known, Plain: x.seen != nil}
	if t.key.IsText {
		m.Text = []byte(t.key.Text)
	}
	return m
}

// Land takes the reports of all ranks on the plan under way, when everything that they have copied is on the medium, and commits the keys.
func (p *Push) Land(reports []Report) error {
	under := p.under
	if under == nil {
		return errUnplanned
	}
	p.under = nil
	for _, x := range under.parts {
		x.reported, x.checked, x.seen = true, x.seen != nil || p.bucket != nil, nil
	}
	for _, r := range reports {
		if err := under.note(r); err != nil {
			return err
		}
	}
	if p.bucket != nil {
		return p.bucket.land(under, reports)
	}
	p.o.Paces = p.o.Paces.Learn(under.written(reports))
	for _, c := range under.copies {
		p.to.Space().Wrote(c.at, c.end-c.from)
	}
	batch, err := p.confirmed(under.batch)
	if err != nil {
		return err
	}
	return p.commit(batch)
}

// Paces are how fast nodes have written, for the next push.
func (p *Push) Paces() Paces { return p.o.Paces }

// written is what the nodes have written, as all ranks report, by ranks ascending.
func (u *planned) written(reports []Report) (all []aggregation.Written) {
	for i, r := range reports[:min(len(reports), len(u.nodes))] {
		all = append(all, aggregation.Written{Node: u.nodes[i], Bytes: r.Wrote, Seconds: r.Writing, Sync: r.Syncing})
	}
	return all
}

// note takes what a rank reports of its parts.
func (u *planned) note(r Report) (err error) {
	set := func(number int, to func(x *part)) {
		if number < 0 || number >= len(u.parts) {
			err = fmt.Errorf("a report of part %d of %d", number, len(u.parts))
			return
		}
		to(u.parts[number])
	}
	for _, number := range r.Wrong {
		set(number, func(x *part) { x.wrong = true })
	}
	for _, number := range r.Gone {
		set(number, func(x *part) { x.gone = true })
	}
	for _, f := range r.Failed {
		set(f.Part, func(x *part) { x.err = errors.New(f.Why) })
	}
	return err
}

// Metadata is what a process on another node needs of a store to plan a push of it, everything but the bytes of checkpoints: Source.Metadata there.
func Metadata(o durable.Options) ([]byte, error) {
	for range metadataTries {
		recorder := vfs.NewRecorder(o.FS)
		told, err := facts(recorder, o)
		if err != nil {
			return nil, err
		}
		recorded := recorder.Bytes()
		replayed, err := vfs.Replay(recorded)
		if err != nil {
			return nil, err
		}
		if again, err := facts(replayed, o); err == nil && again == told {
			return recorded, nil
		}
	}
	return nil, fmt.Errorf("%s: its catalog changed %d times while it was read", o.Dir, metadataTries)
}

// metadataTries is how often a catalog is read that a writer changes meanwhile.
const metadataTries = 10

// facts reads a store's metadata, and returns what tells two versions of it apart.
func facts(fs vfs.FS, o durable.Options) (_ [3]uint64, err error) {
	o.FS = fs
	view, err := durable.Read(o)
	if err != nil {
		return [3]uint64{}, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	rows := uint64(0)
	for _, h := range view.State().Histories() {
		view.State().EachKey(h.ID, func(_ model.Key, serial uint64) bool {
			rows += serial
			return true
		})
	}
	return [3]uint64{view.State().MaxSerial(), rows, uint64(len(view.State().Histories()))}, view.Fit()
}
