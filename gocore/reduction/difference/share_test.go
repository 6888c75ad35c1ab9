package difference

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// located draws a region, and says for each byte which checkpoint has it.
func located(t *rapid.T) (*Located, []uint32) {
	l := &Located{Name: "a"}
	var owners []uint32
	for range rapid.IntRange(0, 30).Draw(t, "runs") {
		r := Run{
			At: l.Size, Offset: rapid.Uint64Max(1000).Draw(t, "offset"), Checkpoint: rapid.Uint32Max(5).Draw(t, "checkpoint"),
			Period: rapid.SampledFrom([]uint32{0, 0, 32}).Draw(t, "period"),
		}
		n := rapid.Uint64Range(1, 100).Draw(t, "bytes")
		l.Runs = append(l.Runs, r)
		owners = append(owners, slices.Repeat([]uint32{r.Checkpoint}, int(n))...)
		l.Size += n
	}
	return l, owners
}

// count counts the bytes of each checkpoint one by one.
func count(owners []uint32) []Share {
	bytes := [6]uint64{}
	for _, c := range owners {
		bytes[c]++
	}
	var shares []Share
	for c, n := range bytes {
		if n > 0 {
			shares = append(shares, Share{uint32(c), n})
		}
	}
	return shares
}

func TestSharesAreThoseOfEachByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, owners := located(t)
		from := rapid.IntRange(0, len(owners)).Draw(t, "from")
		to := rapid.IntRange(from, len(owners)).Draw(t, "to")
		if got, want := l.Shares(uint64(from), uint64(to)), count(owners[from:to]); !slices.Equal(got, want) {
			t.Fatalf("%d to %d: %v, not %v", from, to, got, want)
		}
	})
}

func TestBinsAreThoseOfEachByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, owners := located(t)
		bins := rapid.IntRange(1, 80).Draw(t, "bins")
		var got [][]Share
		l.EachBin(bins, func(shares []Share) { got = append(got, shares) })
		if len(got) != min(bins, len(owners)) {
			t.Fatalf("%d bins for %d bytes, not %d", len(got), len(owners), bins)
		}
		for i, shares := range got {
			part := count(owners[i*len(owners)/len(got) : (i+1)*len(owners)/len(got)])
			best := slices.MaxFunc(part, func(a, b Share) int {
				return int(a.Bytes<<8+uint64(a.Checkpoint)) - int(b.Bytes<<8+uint64(b.Checkpoint))
			})
			if !slices.Equal(shares, part) || Most(shares) != best {
				t.Fatalf("bin %d of %d: %v, most is %v, but %v", i, len(got), shares, Most(shares), part)
			}
		}
	})
}

// Bins cover the longest region without gaps.
func TestBinsOfLongRegions(t *testing.T) {
	for _, size := range []uint64{math.MaxUint64, MaxBytes, MaxBytes - 1, 1<<62 + 12345} {
		for _, bins := range []int{1, 3, 1000, 4096} {
			end := uint64(0)
			for i := range bins {
				from, to := Bin(size, i, bins)
				if n := to - from; from != end || to < from || n-size/uint64(bins) > 1 {
					t.Fatalf("bin %d of %d in %d bytes: %d to %d, behind %d", i, bins, size, from, to, end)
				}
				end = to
			}
			if end != size {
				t.Fatalf("%d bins end at %d, not at %d", bins, end, size)
			}
		}
	}
}
