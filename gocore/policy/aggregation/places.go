package aggregation

// How the bytes of a push are cut and laid.
const (
	// BatchBytes and BatchParts end a batch: the bytes that are copied for each file, and the parts of ranks, behind which no further key is taken.
	BatchBytes = 256 << 20
	BatchParts = 4096
	// CopyBytes is the length of one read and one write. A push has as much memory for each of its writers, however many ranks there are.
	CopyBytes = 4 << 20
	// LongestStream bounds the checkpoints that one writer copies from the beginning to the end, which lets it compare them with their checksums meanwhile. Longer ones
	// are copied by several writers, and read back.
	LongestStream = 64 << 20
	// Stripe is the default length of the stripes of a parallel file system. Bytes of one batch share none with those of another, and those of one node none with those of
	// another, if there are as many.
	Stripe = 1 << 20
	// FilesAtOnce is the number of files of an archive that are made at once. Each waits for a sync.
	FilesAtOnce = 32
)

// TakesMore tells whether a batch with so many bytes and parts takes a further key. files is 1 where one process copies everything.
func TakesMore(bytes int64, parts, files int) bool {
	return bytes < BatchBytes*int64(files) && parts < BatchParts
}

// Lay lays bytes of ranks one behind the other in a file whose free room begins at an offset, and returns where those of each rank begin, and where all end. Neighbours
// of one node stay together; nodes nil: all are of one. What a node has begins at a multiple of the stripe, if it is as long.
func Lay(free int64, bytes []int64, nodes []int, stripe int64) (begins []int64, end int64) {
	end = free
	for from := 0; from < len(bytes); {
		to, sum := from, int64(0)
		for ; to < len(bytes) && (nodes == nil || nodes[to] == nodes[from]); to++ {
			sum += bytes[to]
		}
		if sum >= stripe {
			end = (end + stripe - 1) / stripe * stripe
		}
		for _, n := range bytes[from:to] {
			begins = append(begins, end)
			end += n
		}
		from = to
	}
	return begins, end
}

// ByTurns is the order in which pieces of files are copied: the files by turns, and each from its beginning to its end.
func ByTurns[T any](files [][]T) []T {
	most, count := 0, 0
	for _, pieces := range files {
		most, count = max(most, len(pieces)), count+len(pieces)
	}
	all := make([]T, 0, count)
	for i := range most {
		for _, pieces := range files {
			if i < len(pieces) {
				all = append(all, pieces[i])
			}
		}
	}
	return all
}
