package dedup

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
)

var lineages = flag.String("lineages", "", "write lineages into this folder, which benchmarks/device/dedup.py compares with those of the CUDA kernels")

const writtenBlock = 4 << 10

// A file of the flag's folder is: u32 chunk, 1 if blocks have digests, checkpoints, regions; u64 seed; then for each checkpoint its regions, the bitmap and
// the data. A region is: bytes, digests of chunks, digests of blocks, hashes of the blocks of the checksum. Each of these sequences has its length in bytes,
// a u64, before it. All numbers are little-endian.
func TestWriteLineages(t *testing.T) {
	if *lineages == "" {
		t.Skip("writes files; needs -args -lineages FOLDER")
	}
	if err := os.MkdirAll(*lineages, 0o755); err != nil {
		t.Fatal(err)
	}
	for chunk := 32; chunk <= writtenBlock; chunk *= 2 {
		for _, blocks := range []bool{false, true} {
			if blocks && chunk > 512 {
				continue
			}
			name := fmt.Sprintf("%04d-%v.bin", chunk, blocks)
			writeLineage(t, name, lineageFile(t, chunk, blocks))
		}
		for _, method := range []difference.Method{difference.List, difference.Tree} {
			writeLineage(t, fmt.Sprintf("%04d-%v.labels", chunk, method), labelsFile(t, chunk, method))
		}
	}
}

func writeLineage(t *testing.T, name string, file []byte) {
	if err := os.WriteFile(filepath.Join(*lineages, name), file, 0o644); err != nil {
		t.Fatal(err)
	}
}

// lineageFile makes checkpoints whose regions begin empty, grow, shrink, and change nowhere, in places, at their end and everywhere.
func lineageFile(t *testing.T, chunk int, blocks bool) []byte {
	r := rand.New(rand.NewPCG(uint64(chunk), 1))
	seed := r.Uint64()
	lineage, err := New(Options{Method: difference.Basic, Chunk: chunk, Seed: seed, Blocks: blocks})
	if err != nil {
		t.Fatal(err)
	}
	random := source(r)
	regions := firstRegions(chunk, random)
	const checkpoints = 4
	file := numbers(uint32(chunk), map[bool]uint32{true: 1}[blocks], checkpoints, uint32(len(regions)))
	file = binary.LittleEndian.AppendUint64(file, seed)
	f := digest.New(digest.XXH3, seed)
	for number := range uint32(checkpoints) {
		input := named(regions)
		d, _, err := lineage.Dedup(number, input)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range input {
			file = appendRegion(file, f, g, lineage, blocks)
		}
		file = sequence(sequence(file, d.Changed), d.Data)
		for i, p := range regions {
			regions[i] = changed(p, (i+int(number))%6, r, random)
		}
	}
	return file
}

// source returns what gives random bytes.
func source(r *rand.Rand) func(n int) []byte {
	return func(n int) []byte {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		return p
	}
}

// firstRegions are those of a lineage's first checkpoint.
func firstRegions(chunk int, random func(n int) []byte) (regions [][]byte) {
	for _, n := range []int{0, 1, chunk, 5*chunk - 1, writtenBlock + 300, digest.SumBytes, digest.SumBytes + 5*chunk + 3, 3*digest.SumBytes + 777} {
		regions = append(regions, random(n))
	}
	return regions
}

func named(regions [][]byte) (all []Region) {
	for i, p := range regions {
		all = append(all, Region{Name: fmt.Sprint(i), Bytes: p})
	}
	return all
}

// labelsFile makes a lineage of the method List or Tree, in which bytes also move: the last region begins with those of the one before. Some of the checkpoints find the
// record full. Its file is that of lineageFile with 1 for Tree in the place of blocks, and behind the seed the capacity of the record, a u64. Behind the data of each
// checkpoint are its entries of first occurrences (position << 24 | level, u64), those of shifted duplicates (the same, checkpoint, offset), and how many
// entries the record has then, a u64.
func labelsFile(t *testing.T, chunk int, method difference.Method) []byte {
	r := rand.New(rand.NewPCG(uint64(chunk), 2))
	seed := r.Uint64()
	basic, err := New(Options{Method: difference.Basic, Chunk: chunk, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	lineage, err := New(Options{Method: method, Chunk: chunk, Seed: seed, Record: 1 << 18})
	if err != nil {
		t.Fatal(err)
	}
	random := source(r)
	regions := firstRegions(chunk, random)
	const checkpoints = 5
	file := numbers(uint32(chunk), uint32(method-difference.List), checkpoints, uint32(len(regions)))
	_, capacity := lineage.Recorded()
	file = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(file, seed), uint64(capacity))
	f := digest.New(digest.XXH3, seed)
	for number := range uint32(checkpoints) {
		last := len(regions) - 1
		copy(regions[last], regions[last-1])
		input := named(regions)
		bitmap, _, err := basic.Dedup(number, input)
		if err != nil {
			t.Fatal(err)
		}
		d, _, err := lineage.Dedup(number, input)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range input {
			file = appendRegion(file, f, g, lineage, false)
		}
		file = sequence(sequence(file, bitmap.Changed), d.Data)
		file = appendEntries(file, d)
		recorded, _ := lineage.Recorded()
		file = sequence(file, binary.LittleEndian.AppendUint64(nil, uint64(recorded)))
		for i, p := range regions {
			regions[i] = changed(p, (i+int(number))%6, r, random)
		}
	}
	return file
}

func appendEntries(file []byte, d *difference.Difference) []byte {
	var firsts, shifts []byte
	for _, e := range d.First {
		firsts = binary.LittleEndian.AppendUint64(firsts, e.Position<<24|uint64(e.Extent))
	}
	for _, e := range d.Shifted {
		shifts = binary.LittleEndian.AppendUint64(shifts, e.Position<<24|uint64(e.Extent))
		shifts = binary.LittleEndian.AppendUint64(shifts, uint64(e.Checkpoint))
		shifts = binary.LittleEndian.AppendUint64(shifts, e.Offset)
	}
	return sequence(sequence(file, firsts), shifts)
}

// changed returns the next version of a region.
func changed(p []byte, kind int, r *rand.Rand, random func(n int) []byte) []byte {
	p = append([]byte(nil), p...)
	switch {
	case kind == 5: // longer
		return append(p, random(1+r.IntN(9000))...)
	case len(p) == 0 || kind == 0: // as before
	case kind == 1: // some bytes
		for range 3 {
			p[r.IntN(len(p))] ^= 1
		}
	case kind == 2: // the last byte
		p[len(p)-1] ^= 0x80
	case kind == 3: // everything
		return random(len(p))
	case kind == 4: // shorter
		return p[:r.IntN(len(p))]
	}
	return p
}

func appendRegion(file []byte, f *digest.Function, g Region, lineage *Lineage, blocks bool) []byte {
	var leaves, others, sums []byte
	if len(g.Bytes) > 0 {
		for _, d := range lineage.Tree(g.Name).Level(0) {
			leaves = appendDigest(leaves, d)
		}
	}
	for at := 0; blocks && at < len(g.Bytes); at += writtenBlock {
		others = appendDigest(others, f.Block(g.Bytes[at:min(at+writtenBlock, len(g.Bytes))]))
	}
	for at := 0; at < len(g.Bytes); at += digest.SumBytes {
		sums = binary.LittleEndian.AppendUint64(sums, f.SumBlock(g.Bytes[at:min(at+digest.SumBytes, len(g.Bytes))]))
	}
	for _, p := range [][]byte{g.Bytes, leaves, others, sums} {
		file = sequence(file, p)
	}
	return file
}

func appendDigest(p []byte, d digest.Digest) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(p, d.Lo), d.Hi)
}

func sequence(file, p []byte) []byte {
	return append(binary.LittleEndian.AppendUint64(file, uint64(len(p))), p...)
}

func numbers(values ...uint32) (file []byte) {
	for _, v := range values {
		file = binary.LittleEndian.AppendUint32(file, v)
	}
	return file
}
