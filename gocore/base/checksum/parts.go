package checksum

// PartBytes divides the length of every part of a leaf but the last.
const PartBytes = 1 << 10

// Parts copies a leaf and takes its hash like CopyLeaf, when the leaf comes part by part, in the order of its bytes. The zero value begins
// one.
type Parts struct {
	added int
	sums  [8]uint64
}

// Add copies the next part to its place in leaf, which is the whole destination, bypassing the cache where it can: at addresses that 64
// divides. As many bytes as the part has are asked for from next on meanwhile, so that what is gathered then is there; next need not exist.
func (p *Parts) Add(leaf, part []byte, next uintptr) {
	p.add(leaf, part, next)
	p.added += len(part)
}

// Sum returns Leaf(leaf), after the last part. From then on others may be told of the copy.
func (p *Parts) Sum(leaf []byte) uint64 { return p.sum(leaf) }
