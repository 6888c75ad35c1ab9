package dedup

import (
	"bytes"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/tree"
)

const (
	// blockBytes is the length of a block with a digest of its own (Options.Blocks). It is a multiple of every chunk length.
	blockBytes = 4 << 10
	// SegmentBytes is what one call of the function that Options.Parallel gets reads: long against the cost of starting it, and short enough that the
	// last ones do not leave threads idle.
	SegmentBytes = 16 * digest.SumBytes
)

// segment is a piece of a region, and what was found in it.
type segment struct {
	part    *part
	bytes   []byte // from at up to end
	before  []byte // those of the checkpoint before, from at on, while they are at hand
	at, end int
	sums    []uint64
	blocks  []digest.Digest
	changes []tree.Change
	// collided are leaves whose digest is that of other bytes in the checkpoint before.
	collided []int
}

// scan reads each region once: it makes the checksum, finds the leaves whose digest is new, and makes the tree.
func (w *work) scan() {
	var segments []segment
	for i := range w.parts {
		segments = w.parts[i].cut(segments, 0, w.parts[i].bytes)
	}
	w.hash(segments)
	for i := range w.parts {
		p := &w.parts[i]
		n := 0
		for n < len(segments) && segments[n].part == p {
			n++
		}
		p.gather(segments[:n], w.lineage.function, w.lineage.options.Method)
		segments = segments[n:]
	}
}

// cut appends the segments of bytes that lie in the region from an offset on, which is a multiple of SegmentBytes.
func (p *part) cut(segments []segment, at int, bytes []byte) []segment {
	for len(bytes) > 0 {
		n := min(SegmentBytes, len(bytes))
		segments = append(segments, segment{part: p, bytes: bytes[:n], at: at, end: at + n})
		at, bytes = at+n, bytes[n:]
	}
	return segments
}

// hash scans segments.
func (w *work) hash(segments []segment) {
	o := &w.lineage.options
	each := o.Parallel
	if each == nil {
		each = oneByOne
	}
	each(len(segments), func(i int) { segments[i].scanBeside(w.before, w.lineage.function, o) })
}

func oneByOne(n int, work func(i int)) {
	for i := range n {
		work(i)
	}
}

// gather takes over the findings of the region's segments.
func (p *part) gather(segments []segment, f *digest.Function, method difference.Method) {
	count, sums, blocks := 0, 0, 0
	for i := range segments {
		s := &segments[i]
		count, sums, blocks = count+len(s.changes), sums+len(s.sums), blocks+len(s.blocks)
	}
	all := make([]uint64, 0, sums)
	p.blocks, p.changes = make([]digest.Digest, 0, blocks), make([]tree.Change, 0, count)
	for i := range segments {
		s := &segments[i]
		all, p.blocks, p.changes = append(all, s.sums...), append(p.blocks, s.blocks...), append(p.changes, s.changes...)
		for _, leaf := range s.collided {
			if p.collided == nil {
				p.collided = map[int]bool{}
			}
			p.collided[leaf] = true
		}
		s.changes = nil
	}
	p.checksum = f.Combine(all)
	if method == difference.Full {
		return
	}
	var old *tree.Tree
	if p.old != nil {
		old = p.old.tree
	}
	inner := f
	if method != difference.Tree {
		inner = nil
	}
	p.tree = old.Next(uint64(p.size), p.leaves, p.changes, inner)
}

// scanBeside is scan beside the bytes of the checkpoint before, as far as these are at hand.
func (s *segment) scanBeside(before Before, f *digest.Function, o *Options) {
	old, _ := s.part.before()
	if n := min(s.end, s.part.old.size()) - s.at; before != nil && len(old) > 0 && n > 0 {
		before(s.part.name, s.at, n, func(then []byte) {
			s.before = then
			s.scan(f, o)
			s.before = nil
		})
		return
	}
	s.scan(f, o)
}

// differs tells whether bytes of the region, from an offset up to another, are known not to be those of the checkpoint before.
func (s *segment) differs(from, to int) bool {
	return to-s.at <= len(s.before) && !bytes.Equal(s.between(from, to), s.before[from-s.at:to-s.at])
}

// scan reads the segment in blocks of the checksum, which stay in the core's cache between the two hashes.
func (s *segment) scan(f *digest.Function, o *Options) {
	old, oldBlocks := s.part.before()
	s.sums = make([]uint64, 0, SegmentBytes/digest.SumBytes)
	for at := s.at; at < s.end; at += digest.SumBytes {
		end := min(at+digest.SumBytes, s.end)
		s.sums = append(s.sums, f.SumBlock(s.between(at, end)))
		switch {
		case o.Method == difference.Full:
		case o.Blocks && o.Chunk < blockBytes:
			s.scanBlocks(f, old, oldBlocks, at, end)
		default:
			s.scanLeaves(f, old, at, end)
		}
	}
}

// between returns the bytes of the region from an offset up to another, which lie in the segment.
func (s *segment) between(from, to int) []byte { return s.bytes[from-s.at : to-s.at] }

// before returns the digests of the region in the checkpoint before that can be compared with those of now.
func (p *part) before() (leaves, blocks []digest.Digest) {
	if p.old == nil {
		return nil, nil
	}
	leaves = p.old.tree.Level(0)
	if size, old := uint64(p.size), p.old.tree.Size(); size != old { // chunks that are not full have another length now, or are missing
		leaves = leaves[:min(size, old)/uint64(p.chunk)]
	}
	return leaves, p.old.blocks
}

// scanBlocks hashes the leaves of the blocks from at up to end whose digest is not that of the checkpoint before.
func (s *segment) scanBlocks(f *digest.Function, old, oldBlocks []digest.Digest, at, end int) {
	for ; at < end; at += blockBytes {
		stop := min(at+blockBytes, end)
		d := f.Block(s.between(at, stop))
		s.blocks = append(s.blocks, d)
		i := at / blockBytes
		if i >= len(oldBlocks) || oldBlocks[i] != d || (stop-1)/s.part.chunk >= len(old) || s.differs(at, stop) {
			s.scanLeaves(f, old, at, stop)
		}
	}
}

// scanLeaves hashes the leaves of the bytes from at up to end.
func (s *segment) scanLeaves(f *digest.Function, old []digest.Digest, at, end int) {
	chunk := s.part.chunk
	i := at / chunk
	for ; at+chunk <= end; at += chunk {
		s.compare(old, i, at, at+chunk, f.Chunk(s.between(at, at+chunk)))
		i++
	}
	if at < end {
		s.compare(old, i, at, end, f.Tail(s.between(at, end)))
	}
}

// compare finds out whether leaf i, which has these bytes and this digest, is that of the checkpoint before.
func (s *segment) compare(old []digest.Digest, i, from, to int, d digest.Digest) {
	switch {
	case i >= len(old) || old[i] != d:
	case s.differs(from, to):
		s.collided = append(s.collided, i)
	default:
		return
	}
	s.changes = append(s.changes, tree.Change{Leaf: i, Digest: d})
}
