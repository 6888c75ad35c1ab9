package digest

import (
	"encoding/binary"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// The published vectors of MurmurHash3_x64_128.
func TestMurmur3Vectors(t *testing.T) {
	for _, c := range []struct {
		seed   uint64
		text   string
		lo, hi uint64
	}{
		{0, "", 0, 0},
		{0, "hello", 0xcbd8a7b341bd9b02, 0x5b1e906a48ae1d19},
		{0, "hello, world", 0x342fac623a5ebc8e, 0x4cdcbc079642414d},
		{0, "19 Jan 2038 at 3:14:07 AM", 0xb89e5988b737affc, 0x664fc2950231b2cb},
		{0, "The quick brown fox jumps over the lazy dog.", 0xcd99481f9ee902c9, 0x695da1a38987b6e7},
		{1, "", 0x4610abe56eff5cb5, 0x51622daa78f83583},
		{1, "hello", 0xa78ddff5adae8d10, 0x128900ef20900135},
		{42, "", 0xf02aa77dfa1b8523, 0xd1016610da11cbb9},
		{42, "hello", 0xc4b8b3c960af6f08, 0x2334b875b0efbc7a},
	} {
		if got := murmur3([]byte(c.text), c.seed); got != (Digest{c.lo, c.hi}) {
			t.Errorf("%q with seed %d: %x, want %x %x", c.text, c.seed, got, c.lo, c.hi)
		}
	}
}

// SMHasher's verification value of MurmurHash3_x64_128, which covers all lengths below 256.
func TestMurmur3Verification(t *testing.T) {
	var key [256]byte
	var all []byte
	for i := range key {
		key[i] = byte(i)
		d := murmur3(key[:i], uint64(256-i))
		all = binary.LittleEndian.AppendUint64(all, d.Lo)
		all = binary.LittleEndian.AppendUint64(all, d.Hi)
	}
	if got := uint32(murmur3(all, 0).Lo); got != 0x6384ba69 {
		t.Errorf("%#x, want 0x6384ba69", got)
	}
}

func bytesUpTo(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*131 + i>>5)
	}
	return p
}

// The numbers are part of the format: a GPU must compute the same ones.
func TestGolden(t *testing.T) {
	p := bytesUpTo(40000)
	for _, c := range []struct {
		kind                     Kind
		chunk, long, tail, inner Digest
		block                    Digest
	}{
		{XXH3, goldenXXH3[0], goldenXXH3[1], goldenXXH3[2], goldenXXH3[3], goldenXXH3[4]},
		{Murmur3, goldenMurmur3[0], goldenMurmur3[1], goldenMurmur3[2], goldenMurmur3[3], goldenMurmur3[4]},
	} {
		f := New(c.kind, 0x0123456789abcdef)
		got := [...]Digest{f.Chunk(p[:128]), f.Chunk(p[:4096]), f.Tail(p[:77]), f.Node(Digest{1, 2}, Digest{3, 4}), f.Block(p[:4096])}
		if want := [...]Digest{c.chunk, c.long, c.tail, c.inner, c.block}; got != want {
			t.Errorf("%s: %#v", c.kind, got)
		}
		for i, n := range []int{0, 5, SumBytes, SumBytes + 1, 40000} {
			if got := f.Sum(p[:n]); got != goldenSums[i] {
				t.Errorf("%s: checksum of %d bytes: %#x, want %#x", c.kind, n, got, goldenSums[i])
			}
		}
	}
}

var goldenXXH3 = [5]Digest{
	{0x26263fb4abd8c415, 0xd558c5002ca3bd6d}, {0xc584bc0d3b2c38dd, 0x67254ef934ebb0ed}, {0x44c30a6ae992530c, 0xd211a512914d3cab},
	{0xcd10a6d9a4eeab5e, 0x3c454e56af17c96e}, {0xf6822fbf48eca1d6, 0x99e60f31df04e95a},
}

var goldenMurmur3 = [5]Digest{
	{0x9e9359114a2fd69d, 0xf15a4c2d86ffc0f1}, {0x6bfb20f1105cc6aa, 0x5904eeac4e3a3e1c}, {0x14495d0b46e6ca69, 0xdd44a09b86a8f677},
	{0x0e818c880de962a7, 0xe63c23adce4e1fcc}, {0x5041eb8988a6c877, 0x1f2590ba0d812f5f},
}

var goldenSums = [5]uint64{0x035d7ef828796f4f, 0x84cb03d506d9cbe9, 0xb4fb9cfca6343ea3, 0xa3499bcfd22d6e24, 0x53616312c88f50a0}

// The seeds of roles are outputs of SplitMix64; those of seed 1234567 are published.
func TestSeeds(t *testing.T) {
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := Seed(1234567, uint64(i+1)); got != want {
			t.Errorf("output %d: %d, want %d", i+1, got, want)
		}
	}
}

// XXH3-128 is that of xxHash 0.8: its published hash of nothing, and the seeds where they belong.
func TestXXH3(t *testing.T) {
	if h := xxh3.Hash128Seed(nil, 0); h.Hi != 0x99aa06d3014798d8 || h.Lo != 0x6001c324468d497f {
		t.Errorf("%x", h)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "bytes")
		seed := rapid.Uint64().Draw(t, "seed")
		h := xxh3.Hash128Seed(p, Seed(seed, 1))
		if got := New(XXH3, seed).Chunk(p); got != (Digest{h.Lo, h.Hi}) {
			t.Fatalf("%x, want %x", got, h)
		}
	})
}

// Equal bytes give other digests as a chunk, as a last chunk, as a node, as a block, with another seed, and with another function.
func TestRolesDiffer(t *testing.T) {
	left, right := Digest{1, 2}, Digest{3, 4}
	p := make([]byte, 0, 32)
	for _, v := range []uint64{1, 2, 3, 4} {
		p = binary.LittleEndian.AppendUint64(p, v)
	}
	seen := map[Digest]string{}
	for _, kind := range []Kind{XXH3, Murmur3} {
		for _, seed := range []uint64{0, 1, 1 << 63} {
			f := New(kind, seed)
			roles := map[string]Digest{"chunk": f.Chunk(p), "tail": f.Tail(p), "node": f.Node(left, right), "swapped": f.Node(right, left), "block": f.Block(p)}
			for role, d := range roles {
				if other, ok := seen[d]; ok {
					t.Errorf("%s %d %s: the same as %s", kind, seed, role, other)
				}
				seen[d] = role
			}
		}
	}
	zeros := make([]byte, 100)
	f := New(Murmur3, 9)
	for n := range zeros {
		d := f.Tail(zeros[:n])
		if other, ok := seen[d]; ok {
			t.Errorf("%d zeros: the same as %s", n, other)
		}
		seen[d] = "zeros"
	}
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Byte(), 32, 64).Draw(t, "bytes")
		bits := rapid.IntRange(1, 128).Draw(t, "bits")
		f := New(rapid.SampledFrom([]Kind{XXH3, Murmur3}).Draw(t, "kind"), 5)
		cut := f.Cut(bits)
		for i, pair := range [][2]Digest{{f.Chunk(p), cut.Chunk(p)}, {f.Tail(p), cut.Tail(p)}, {f.Block(p), cut.Block(p)}, {f.Node(Digest{}, Digest{}), cut.Node(Digest{}, Digest{})}} {
			full, short := pair[0], pair[1]
			for bit := range 128 {
				word, other := full.Lo, short.Lo
				if bit >= 64 {
					word, other = full.Hi, short.Hi
				}
				a, b := word>>(bit%64)&1, other>>(bit%64)&1
				if bit < bits && a != b || bit >= bits && b != 0 {
					t.Fatalf("role %d, %d bits: %x cut to %x", i, bits, full, short)
				}
			}
		}
		if f.Sum(p) != cut.Sum(p) {
			t.Fatal("the checksum was cut")
		}
	})
}

// The checksum's definition, written a second time.
func TestChecksum(t *testing.T) {
	data := bytesUpTo(5*SumBytes + 3)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, len(data)), rapid.SampledFrom([]int{SumBytes, 2 * SumBytes})).Draw(t, "n")
		seed := rapid.Uint64().Draw(t, "seed")
		p := data[:n]
		want := xxh3.HashSeed(p, Seed(seed, 5))
		if n > SumBytes {
			var text []byte
			for at := 0; at < n; at += SumBytes {
				text = binary.LittleEndian.AppendUint64(text, xxh3.HashSeed(p[at:min(at+SumBytes, n)], Seed(seed, 5)))
			}
			want = xxh3.HashSeed(text, Seed(seed, 5))
		}
		if got := New(XXH3, seed).Sum(p); got != want {
			t.Fatalf("%d bytes: %#x, want %#x", n, got, want)
		}
	})
}

func TestKinds(t *testing.T) {
	if !XXH3.Valid() || !Murmur3.Valid() || Kind(0).Valid() || Kind(3).Valid() {
		t.Error("Valid")
	}
	if XXH3.String() != "xxh3" || Murmur3.String() != "murmur3" || Kind(9).String() != "unknown" {
		t.Error("String")
	}
}

func TestNoAllocation(t *testing.T) {
	p := bytesUpTo(512)
	f := New(XXH3, 1)
	if n := testing.AllocsPerRun(100, func() { f.Node(f.Chunk(p), f.Tail(p[:99])) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
