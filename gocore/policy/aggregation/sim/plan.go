package sim

import "velocpy/gocore/policy/aggregation"

// Copy is a range of a rank's bytes, and its place in a file: a checkpoint, or a piece of one where one process copies everything.
type Copy struct {
	Rank, File     int
	Reader, Writer int // ranks: the same one, or the reader sends it to the writer
	At, Bytes      int64
}

// leader is a rank that writes into a file.
type leader struct{ file, rank int }

// plan is what is copied by one batch of keys.
type plan struct {
	keys    int
	leaders []leader
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
	most := l.most
	if most == 0 && nodes != nil {
		most = aggregation.DefaultLeaders(nodes, l.push.Files)
	}
	files := make([][]Copy, l.push.Files)
	from := 0
	for file, end := range aggregation.Groups(bytes, l.push.Files) {
		writers := make([]int, end-from) // one process: the first rank of each file stands for it
		if nodes != nil {
			var leaders []int
			leaders, writers = aggregation.Elect(bytes[from:end], nodes[from:end], most)
			for _, rank := range leaders {
				plan.leaders = append(plan.leaders, leader{file, from + rank})
			}
		}
		var of []int
		if nodes != nil {
			of = nodes[from:end]
		}
		files[file] = l.lay(file, from, writers, of, keys)
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

// lay lays what ranks have for a file one behind the other. Ranks are those from one on, as many as there are writers, which are counted from it, too. Without nodes, one
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
			whole := Copy{Rank: rank, File: file, Writer: from + writer, At: at, Bytes: l.push.Bytes[rank]}
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
