package dedup

import (
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/tree"
)

// blockBytes is the length of a block with a digest of its own (Options.Blocks).
const blockBytes = 4 << 10

// scan reads each region once: it makes the checksum, finds the leaves whose digest is new, and makes the tree.
func (w *work) scan() {
	l := w.lineage
	f := l.function
	var inner *digest.Function
	if l.options.Method == difference.Tree {
		inner = f
	}
	for i := range w.parts {
		p := &w.parts[i]
		if l.options.Method == difference.Full {
			p.checksum = f.Sum(p.bytes)
			continue
		}
		p.scan(f, l.options.Blocks && l.options.Chunk < blockBytes)
		var old *tree.Tree
		if p.old != nil {
			old = p.old.tree
		}
		p.tree = old.Next(uint64(len(p.bytes)), p.leaves, p.changes, inner)
	}
}

// scan reads the region in blocks of the checksum, which stay in the core's cache between the two hashes.
func (p *part) scan(f *digest.Function, blocks bool) {
	var old []digest.Digest
	oldSize := uint64(0)
	var oldBlocks []digest.Digest
	if p.old != nil {
		old, oldSize, oldBlocks = p.old.tree.Level(0), p.old.tree.Size(), p.old.blocks
	}
	if size := uint64(len(p.bytes)); size != oldSize { // chunks that are not full have another length now, or are missing
		old = old[:min(size, oldSize)/uint64(p.chunk)]
	}
	if blocks {
		p.blocks = make([]digest.Digest, 0, tree.Chunks(uint64(len(p.bytes)), blockBytes))
	}
	sum := f.Checksum()
	for at := 0; at < len(p.bytes); at += digest.SumBytes {
		end := min(at+digest.SumBytes, len(p.bytes))
		sum.Add(p.bytes[at:end])
		if blocks {
			p.scanBlocks(f, old, oldBlocks, at, end)
		} else {
			p.scanLeaves(f, old, at, end)
		}
	}
	p.checksum = sum.Sum()
}

// scanBlocks hashes the leaves of the blocks from at up to end whose digest is not that of the checkpoint before.
func (p *part) scanBlocks(f *digest.Function, old, oldBlocks []digest.Digest, at, end int) {
	for ; at < end; at += blockBytes {
		stop := min(at+blockBytes, end)
		d := f.Block(p.bytes[at:stop])
		i := len(p.blocks)
		p.blocks = append(p.blocks, d)
		if i >= len(oldBlocks) || oldBlocks[i] != d || (stop-1)/p.chunk >= len(old) {
			p.scanLeaves(f, old, at, stop)
		}
	}
}

// scanLeaves hashes the leaves of the bytes from at up to end.
func (p *part) scanLeaves(f *digest.Function, old []digest.Digest, at, end int) {
	i := at / p.chunk
	for ; at+p.chunk <= end; at += p.chunk {
		d := f.Chunk(p.bytes[at : at+p.chunk])
		if i >= len(old) || old[i] != d {
			p.changes = append(p.changes, tree.Change{Leaf: i, Digest: d})
		}
		i++
	}
	if at < end {
		d := f.Tail(p.bytes[at:end])
		if i >= len(old) || old[i] != d {
			p.changes = append(p.changes, tree.Change{Leaf: i, Digest: d})
		}
	}
}
