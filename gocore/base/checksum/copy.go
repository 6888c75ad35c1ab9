package checksum

// CopyLeaf copies src to dst, of the same length, and returns Leaf(src): in one pass over memory where the machine has vector code for it. With
// stream the stores bypass the cache, which is faster when the destination is neither in the cache nor needed soon. The slices must not overlap, and
// src must not change meanwhile.
func CopyLeaf(dst, src []byte, stream bool) uint64 {
	return copyLeaf(dst[:len(src):len(src)], src, stream)
}

// copyThenHash is the plain twin of the vector code.
func copyThenHash(dst, src []byte) uint64 {
	copy(dst, src)
	return Leaf(dst)
}
