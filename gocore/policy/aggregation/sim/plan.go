package sim

import (
	"cmp"
	"slices"

	"velocpy/gocore/policy/aggregation"
)

// Copy is a range of a rank's bytes, and its place in a file: a checkpoint, or a piece of one where one process copies everything.
type Copy struct {
	Rank, File     int
	Reader, Writer int // ranks: the same one, or the reader sends it to the writer
	At, Bytes      int64
}

// plan is what is copied by one batch of keys.
type plan struct {
	keys    int
	leaders []aggregation.Lead
	copies  []Copy
}

// Copies lists what each plan of a push copies, in its order. The tests of package archive compare the first plan with a real one.
func Copies(p Push) (plans [][]Copy, err error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	for l := newPlanner(&p); l.left > 0; {
		plans = append(plans, l.next(l.batch(p.Files), p.Nodes).copies)
	}
	return plans, nil
}

// planner makes the plans of a push, one behind the other.
type planner struct {
	push *Push
	left int     // keys
	free []int64 // by file: where its free room begins in it
	most int     // leaders of a file

	paces aggregation.Paces
}

func newPlanner(p *Push) *planner {
	l := &planner{push: p, left: p.Keys, free: make([]int64, p.Files), most: p.Leaders}
	for file := range l.free {
		l.free[file] = p.Front
	}
	return l
}

// batch takes the keys of a batch that is copied into so many files at once.
func (l *planner) batch(files int) (keys int) {
	of := int64(0) // bytes of a key
	for _, n := range l.push.Bytes {
		of += n
	}
	for l.left > 0 && aggregation.TakesMore(int64(keys)*of, keys*len(l.push.Bytes), files) {
		l.left--
		keys++
	}
	return keys
}

// next plans a batch of keys. Ranks of one node are told apart from others where nodes is not nil; else one process reads and writes everything.
func (l *planner) next(keys int, nodes []int) *plan {
	plan := &plan{keys: keys}
	bytes := make([]int64, len(l.push.Bytes))
	for rank, n := range l.push.Bytes {
		bytes[rank] = n * int64(keys)
	}
	ends := aggregation.Groups(bytes, l.push.Files)
	writers := l.elect(plan, bytes, ends, nodes)
	files := make([][]Copy, l.push.Files)
	from := 0
	for file, end := range ends {
		var of []int
		if nodes != nil {
			of = nodes[from:end]
		}
		files[file] = l.lay(file, from, writers[file], of, keys)
		for i := range files[file] {
			x := &files[file][i]
			if x.Reader = x.Writer; nodes != nil {
				x.Reader = aggregation.Reader(x.Rank, x.Writer, nodes)
			}
		}
		from = end
	}
	plan.copies = aggregation.ByTurns(files)
	return plan
}

// elect says by files and ranks which rank writes what each rank has. One process writes everything: the first rank of each file stands for it.
func (l *planner) elect(plan *plan, bytes []int64, ends, nodes []int) (writers [][]int) {
	var files []aggregation.Group
	from := 0
	for _, end := range ends {
		files = append(files, aggregation.Group{First: from, Bytes: bytes[from:end]})
		from = end
	}
	if nodes == nil {
		for _, g := range files {
			writers = append(writers, slices.Repeat([]int{g.First}, len(g.Bytes)))
		}
		return writers
	}
	most := cmp.Or(l.most, aggregation.DefaultLeaders(nodes, l.push.Files))
	writers, plan.leaders = aggregation.Writers(files, nodes, most, l.paces.Slow(), l.most > 0)
	return writers
}

// learn takes what the ranks have written for a plan.
func (l *planner) learn(all []*process) {
	if l.push.Even {
		return
	}
	var written []aggregation.Written
	for _, p := range all {
		written = append(written, aggregation.Written{Node: p.node.number, Bytes: p.writing.bytes, Seconds: seconds(p.writing.passed)})
	}
	l.paces = l.paces.Learn(written)
}

// lay lays what ranks have for a file one behind the other. Ranks are those from one on, as many as there are writers. Without nodes, one
// process copies everything: several writers copy what is long.
func (l *planner) lay(file, from int, writers, nodes []int, keys int) (pieces []Copy) {
	bytes := make([]int64, len(writers))
	for i := range writers {
		bytes[i] = l.push.Bytes[from+i] * int64(keys)
	}
	begins, end := aggregation.Lay(l.free[file], bytes, nodes, aggregation.Stripe)
	l.free[file] = end
	for i, writer := range writers {
		rank, at := from+i, begins[i]-l.push.Front
		for range keys {
			whole := Copy{Rank: rank, File: file, Writer: writer, At: at, Bytes: l.push.Bytes[rank]}
			at += whole.Bytes
			switch {
			case whole.Bytes == 0:
			case nodes == nil:
				pieces = append(pieces, whole.pieces()...)
			default:
				pieces = append(pieces, whole)
			}
		}
	}
	return pieces
}

// pieces cuts what several threads may copy. A checkpoint that is compared with its checksums as it is read is one piece.
func (c *Copy) pieces() (all []Copy) {
	length := int64(aggregation.CopyBytes)
	if c.Bytes <= aggregation.LongestStream {
		length = c.Bytes
	}
	for from := int64(0); from < c.Bytes; from += length {
		piece := *c
		piece.At, piece.Bytes = c.At+from, min(length, c.Bytes-from)
		all = append(all, piece)
	}
	return all
}
