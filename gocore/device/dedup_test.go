package device

import (
	"errors"
	"testing"

	"velocpy/gocore/reduction/difference"

	"pgregory.net/rapid"
)

func deduplication(method difference.Method, chunk int, sizes ...int64) *Deduplication {
	c := &Deduplication{Method: method, Chunk: chunk, Number: 5, Oldest: 2, Scratch: 16, Result: 32}
	for _, n := range sizes {
		c.Regions = append(c.Regions, DedupRegion{At: 48, Bytes: n, Leaves: 64})
	}
	return c
}

// A result needs no more than the function says, whatever the chunks are.
func TestDedupResultHoldsAnyResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		method := rapid.SampledFrom([]difference.Method{difference.Basic, difference.List, difference.Tree}).Draw(t, "method")
		c := deduplication(method, 32<<rapid.IntRange(0, 7).Draw(t, "chunk"), rapid.SliceOfN(rapid.Int64Range(0, 20_000), 0, 6).Draw(t, "sizes")...)
		var n DedupCounts
		for i := range c.Regions {
			for left := c.Regions[i].Bytes; left > 0; left -= int64(c.Chunk) {
				first := method == difference.Basic || rapid.Bool().Draw(t, "first")
				switch {
				case first:
					n.Bytes += min(left, int64(c.Chunk))
					n.First++
				case rapid.Bool().Draw(t, "shifted"):
					n.Shifted++
				}
			}
		}
		if method == difference.Basic {
			n.First = 0
		}
		if got, most := c.ResultBytes(n), DedupResult(c); got > most || most%256 != 0 {
			t.Fatalf("a result of %d B in %d B", got, most)
		}
	})
}

// The arrays of the scratch memory do not overlap, but for those that share a place.
func TestDedupScratchIsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(0, 1<<22), 0, 80).Draw(t, "sizes")
		c := deduplication(difference.Tree, 32<<rapid.IntRange(0, 7).Draw(t, "chunk"), sizes...)
		c.Entries, c.Sweeps = rapid.IntRange(0, 1000).Draw(t, "entries"), true
		c.Forgotten = make([]uint32, rapid.IntRange(0, 5).Draw(t, "forgotten"))
		r, chunks := c.Room(), c.Chunks()
		end := int64(0)
		for i, part := range []struct{ at, bytes int64 }{
			{r.Table, DedupTableBytes * int64(len(c.Regions))}, {r.Forgotten, 4 * int64(len(c.Forgotten))}, {r.Upload, 0}, {r.Zeros, 0},
			{r.Changed, parts(chunks, 8)}, {r.Counts, DedupCountsBytes}, {r.Ends, DedupEndsBytes}, {r.Totals, 0}, {r.States, 0}, {r.Swept, 8}, {r.ZerosEnd, 0},
			{r.ChunkTable, 4 * r.Tables}, {r.NodeTable, 4 * r.Tables}, {r.Slots, RecordBytes(c.Entries) - min(RecordBytes(c.Entries), RecordHead)}, {r.OnesEnd, 0},
			{r.Sums, 8 * c.SumBlocks()}, {r.Marks, 4 * c.markWords()}, {r.MarkList, 4 * chunks}, {r.Lost, 4 * int64(len(c.Regions))},
			{r.List, 4 * chunks}, {r.Sources, 8 * chunks}, {r.Flags, chunks}, {r.Shifts, 4 * chunks}, {r.Extent, chunks}, {r.Joined, chunks},
			{r.Waves, 8 * chunks}, {r.Nodes, 16 * chunks}, {r.FirstEntries, FirstBytes * chunks}, {r.ShiftEntries, ShiftBytes * chunks}, {r.Bytes, 0},
		} {
			if part.at < end || part.at%16 != 0 {
				t.Fatalf("array %d begins at %d, before %d", i, part.at, end)
			}
			end = part.at + part.bytes
		}
		if r.Tables&(r.Tables-1) != 0 || r.Tables < 2*chunks {
			t.Fatalf("tables of %d slots for %d chunks", r.Tables, chunks)
		}
	})
}

func TestCheckDedup(t *testing.T) {
	good := func() *Deduplication {
		c := deduplication(difference.List, 64, 1000, 0, 70)
		c.Entries, c.Record, c.Forgotten = 3, 80, []uint32{1, 4}
		c.Regions[0].Comparable, c.Regions[0].Void = 16, []ChunkRange{{0, 2}, {2, 16}}
		return c
	}
	if err := CheckDedup(good()); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Deduplication){
		"method":              func(c *Deduplication) { c.Method = difference.Runs },
		"chunk":               func(c *Deduplication) { c.Chunk = 48 },
		"blocks":              func(c *Deduplication) { c.Chunk, c.Blocks = 1024, true },
		"number":              func(c *Deduplication) { c.Number = difference.MaxCheckpoint + 1 },
		"oldest":              func(c *Deduplication) { c.Oldest = 6 },
		"entries":             func(c *Deduplication) { c.Entries = -1 },
		"record":              func(c *Deduplication) { c.Record = 0 },
		"record of Basic":     func(c *Deduplication) { c.Method = difference.Basic },
		"scratch":             func(c *Deduplication) { c.Scratch = 8 },
		"result":              func(c *Deduplication) { c.Result = 0 },
		"forgotten":           func(c *Deduplication) { c.Forgotten = []uint32{4, 4} },
		"address":             func(c *Deduplication) { c.Regions[0].At++ },
		"leaves":              func(c *Deduplication) { c.Regions[0].Leaves = 0 },
		"digests of blocks":   func(c *Deduplication) { c.Blocks = true },
		"length":              func(c *Deduplication) { c.Regions[1].Bytes = -1 },
		"too long":            func(c *Deduplication) { c.Regions[1].Bytes = MostDedupBytes + 1 },
		"too long together":   func(c *Deduplication) { c.Regions[0].Bytes = MostDedupBytes - 60 },
		"too many chunks":     func(c *Deduplication) { c.Regions[0].Bytes = 64 * MostDedupChunks },
		"comparable":          func(c *Deduplication) { c.Regions[0].Comparable = 17 },
		"old blocks":          func(c *Deduplication) { c.Regions[0].OldBlocks = -1 },
		"void ranges overlap": func(c *Deduplication) { c.Regions[0].Void[1].First = 1 },
		"void range is empty": func(c *Deduplication) { c.Regions[0].Void[1].End = 2 },
		"void range is long":  func(c *Deduplication) { c.Regions[0].Void[1].End = 17 },
	} {
		c := good()
		change(c)
		if err := CheckDedup(c); !errors.Is(err, ErrDeduplication) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
