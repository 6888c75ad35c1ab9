package checkpoint

// Small slots are aligned to cache lines, others to pages: direct I/O and huge pages need whole pages, which would waste more than they gain for small
// slots.
const (
	CacheLine  = 64
	page       = 4096
	wholePages = 64 << 10 // the smallest slot that occupies whole pages
)

// Room returns the size and alignment of a slot in the tiers.
func Room(slot int64) (size, align int64) {
	if slot < wholePages {
		return slot, CacheLine
	}
	return (slot + page - 1) / page * page, page
}
