package checksum

// PartBytes divides the length of every part of a leaf but the last one.
const PartBytes = 1 << 10

// Parts copies a leaf and computes its hash like CopyLeaf, while the leaf arrives in parts, in the order of its bytes. The zero value is ready for a
// new leaf.
type Parts struct {
	added int
	sums  [8]uint64
}

// Add copies the next part to its place in leaf, the whole destination. At addresses that are multiples of 64 the stores bypass the cache where that
// is possible. Meanwhile it prefetches as many bytes from next on, for the bytes that are gathered next; that memory need not exist.
func (p *Parts) Add(leaf, part []byte, next uintptr) {
	p.add(leaf, part, next)
	p.added += len(part)
}

// Sum returns Leaf(leaf), after the last part. From then on other threads may read the copy.
func (p *Parts) Sum(leaf []byte) uint64 { return p.sum(leaf) }
