package codec

import (
	"bytes"
	"testing"
	"time"

	"velocpy/gocore/base/checksum"
)

// benched are a mode and data in which all or most chunks take it.
var benched = []struct {
	name, sample string
	mode         Mode
}{
	{"raw", "random", Raw},
	{"const", "zeros", Const},
	{"diff/int8", "ramp int8", Diff},
	{"diff/int16", "ramp int16", Diff},
	{"diff/fp32", "wavefield late", Diff},
	{"diff/fp64", "wavefield late fp64", Diff},
	{"exp/bf16", "weights bf16", Exp},
	{"exp/fp16", "weights fp16", Exp},
	{"exp/fp32", "weights fp32", Exp},
	{"exp/fp64", "weights fp64", Exp},
	{"xrz/bf16 1e-6", "step 1e-6 bf16", Xrz},
	{"xrz/bf16 1e-4", "step 1e-4 bf16", Xrz},
	{"xrz/fp32 1e-5", "step 1e-5 fp32", Xrz},
	{"step/bf16", "step 1e-4 bf16", Step},
	{"step/fp32", "wavefield late, reference", Step},
}

// pieceBytes is the length of the pieces that are timed one by one.
const pieceBytes = 8 * ChunkBytes

// measure runs work for every piece of a region of so many plain bytes. Beside the mean rate it reports that of the fastest run of each piece, which other
// processes disturb least.
func measure(b *testing.B, bytes int, work func(from, to int)) {
	b.SetBytes(int64(bytes))
	best := make([]time.Duration, (bytes+pieceBytes-1)/pieceBytes)
	for b.Loop() {
		for i := range best {
			began := time.Now()
			work(i*pieceBytes, min(bytes, (i+1)*pieceBytes))
			if took := time.Since(began); best[i] == 0 || took < best[i] {
				best[i] = took
			}
		}
	}
	all := time.Duration(0)
	for _, t := range best {
		all += t
	}
	b.ReportMetric(float64(bytes)/1e6/all.Seconds(), "best-MB/s")
}

func sampleOf(b *testing.B, name string) sample {
	if name == "zeros" {
		return sample{kind: Float32, plain: make([]byte, 1<<20)}
	}
	for _, s := range samples() {
		if s.name == name {
			return s
		}
	}
	b.Fatalf("no sample %q", name)
	return sample{}
}

// One goroutine; MB/s of plain bytes, with the verification of hashes. share is the part of the chunks that take the mode; the others are raw.
func BenchmarkDecode(b *testing.B) {
	for _, c := range benched {
		b.Run(c.name, func(b *testing.B) {
			s, mode := sampleOf(b, c.sample), c.mode
			dst := make([]byte, Bound(len(s.plain)))
			n, err := Encode(dst, s.plain, s.reference, Options{Kind: s.kind, Modes: Only(c.mode)})
			if err != nil {
				b.Fatal(err)
			}
			back := make([]byte, len(s.plain))
			c, err := Open(dst[:n], len(s.plain))
			if err != nil {
				b.Fatal(err)
			}
			measure(b, len(s.plain), func(from, to int) {
				if err := c.DecodeChunks(back[from:to], cut(s.reference, from, to), from/ChunkBytes, Chunks(to), 1); err != nil {
					b.Fatal(err)
				}
			})
			b.ReportMetric(share(b, dst[:n], len(s.plain), mode), "share")
			b.ReportMetric(float64(len(s.plain))/float64(n), "ratio")
		})
	}
}

func share(b *testing.B, container []byte, plain int, m Mode) float64 {
	c, err := Open(container, plain)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for i := range c.Chunks() {
		if c.Entry(i).Mode == m {
			n++
		}
	}
	return float64(n) / float64(c.Chunks())
}

// One goroutine, with only the mode and Raw allowed, and at last with all.
func BenchmarkEncode(b *testing.B) {
	for _, c := range benched {
		b.Run(c.name, func(b *testing.B) { benchEncode(b, sampleOf(b, c.sample), Only(c.mode)) })
	}
	for _, s := range samples() {
		b.Run("all/"+s.name, func(b *testing.B) { benchEncode(b, s, AllModes) })
	}
}

func benchEncode(b *testing.B, s sample, m Modes) {
	dst := make([]byte, Bound(len(s.plain)))
	measure(b, len(s.plain), func(from, to int) {
		if _, err := Encode(dst, s.plain[from:to], cut(s.reference, from, to), Options{Kind: s.kind, Modes: m}); err != nil {
			b.Fatal(err)
		}
	})
}

// cut is a part of a region; nil if there is no region.
func cut(region []byte, from, to int) []byte {
	if region == nil {
		return nil
	}
	return region[from:to]
}

// The hash that every decoding contains, over chunks of the same region.
func BenchmarkHash(b *testing.B) {
	s := sampleOf(b, "weights bf16")
	measure(b, len(s.plain), func(from, to int) {
		for i := range Chunks(to - from) {
			checksum.Leaf(part(s.plain[from:to], i))
		}
	})
}

// A survey of 256 MiB with all modes, and what share of an encoding in the modes that it names its time is.
func BenchmarkSurvey(b *testing.B) {
	for _, name := range []string{"weights bf16", "wavefield late", "step 1e-4 bf16"} {
		b.Run(name, func(b *testing.B) {
			s := sampleOf(b, name)
			plain, reference := repeated(s.plain, 256<<20), repeated(s.reference, 256<<20)
			e, err := NewEncoder(s.kind, AllModes)
			if err != nil {
				b.Fatal(err)
			}
			var p Plan
			best := time.Hour
			for b.Loop() {
				began := time.Now()
				if p, err = e.Survey(plain, reference); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(began))
			}
			dst, encoding := bytes.Repeat([]byte{1}, Bound(len(plain))), time.Hour
			for range 5 {
				began := time.Now()
				if _, err := Encode(dst, plain, reference, Options{Kind: s.kind, Modes: p.Modes(0.01)}); err != nil {
					b.Fatal(err)
				}
				encoding = min(encoding, time.Since(began))
			}
			b.ReportMetric(best.Seconds()/encoding.Seconds(), "share")
			b.ReportMetric(float64(len(plain))/1e6/encoding.Seconds(), "encode-MB/s")
			b.ReportMetric(p.Ratio(), "ratio")
		})
	}
}

// repeated repeats a region up to a length; nil if there is none.
func repeated(region []byte, n int) []byte {
	if region == nil {
		return nil
	}
	return bytes.Repeat(region, n/len(region)+1)[:n]
}
