package encoding

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/regions"
)

var choices = []regions.Choice{{Kind: codec.Float32, Modes: codec.Only(codec.Diff)}}

// planned is what a transfer is told whose samples become so many bytes of 1000.
func planned(p *Planner, layout uint64, removable bool, encoded int64) (plan Plan, sampled bool) {
	plan = p.Next(Checkpoint{Layout: layout, Removable: removable})
	if sampled = plan.Sample; sampled {
		p.Sampled(layout, choices, 1000, encoded)
		plan = p.Resume(plan, layout)
	}
	return plan, sampled
}

func TestRawPlansNothing(t *testing.T) {
	p := New(Raw, codec.NoCompression)
	for range 100 {
		if x := p.Next(Checkpoint{Layout: 1, Removable: true}); x.Way != Plain || x.Sample {
			t.Fatal(x)
		}
	}
}

// A layout is sampled first and from time to time, less and less often where it does not pay. What does not become smaller goes plain in between.
func TestSamples(t *testing.T) {
	for pays, want := range map[bool][]int{true: {0, 32, 64, 96, 128}, false: {0, 32, 96, 224, 480, 736}} {
		p, encoded := New(Codec, codec.NoCompression), map[bool]int64{true: 900, false: 980}[pays]
		var samples []int
		for i := range want[len(want)-1] + 1 {
			x, sampled := planned(p, 7, true, encoded)
			if sampled {
				samples = append(samples, i)
			}
			if (x.Way == Encoded) != pays || pays && !slices.Equal(x.Choices, choices) {
				t.Fatalf("checkpoint %d: %v", i, x)
			}
		}
		if !slices.Equal(samples, want) {
			t.Errorf("sampled at %v", samples)
		}
	}
	p := New(Codec, codec.NoCompression) // the first sample that pays ends it
	for range 100 {
		planned(p, 7, false, 980)
	}
	samples := 0
	for range 256 + 4*sampleEvery {
		if _, sampled := planned(p, 7, false, 900); sampled {
			samples++
		}
	}
	if samples < 4 {
		t.Errorf("%d samples", samples)
	}
}

// Checkpoints that a device moves together are all sampled. In whatever order their samples come, one that pays is enough; and many that do not are as one.
func TestSamplesOfOneGroup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, paid := New(Codec, codec.NoCompression), false
		for range rapid.IntRange(1, 4).Draw(t, "groups") {
			pay := rapid.SliceOfN(rapid.Bool(), 1, 20).Draw(t, "pay")
			for !p.Next(Checkpoint{Layout: 1}).Sample {
			}
			for range pay[1:] {
				if !p.Next(Checkpoint{Layout: 1}).Sample {
					t.Fatal("no sample is asked for, though none has come")
				}
			}
			for _, pays := range pay {
				p.Sampled(1, choices, 1000, map[bool]int64{true: 500, false: 1000}[pays])
			}
			k, any := p.layouts[1], slices.Contains(pay, true)
			doubt := paid && !any && len(pay) == 1 // one that does not pay after those that did
			if k.pays != (any || doubt) || any && k.again != sampleEvery || !doubt && k.age != 1 {
				t.Fatalf("%v: %+v", pay, k)
			}
			if paid = any; doubt {
				if !p.Next(Checkpoint{Layout: 1}).Sample {
					t.Fatal("the next one is not sampled")
				}
				if p.Sampled(1, choices, 1000, 1000); k.pays || k.age != 1 {
					t.Fatalf("two in a row: %+v", k)
				}
			}
		}
		p = New(Codec, codec.NoCompression)
		for range rapid.IntRange(1, 20).Draw(t, "members") {
			p.Sampled(1, choices, 1000, 1000)
		}
		if k := p.layouts[1]; k.again != sampleEvery {
			t.Fatalf("the next sample comes after %d", k.again)
		}
	})
}

// With a compressor of the host checkpoints are encoded whatever a sample says, since it was none of the compressor. Three in a row that do not become
// smaller end that until the next sample.
func TestACompressorIsTried(t *testing.T) {
	for became, pays := range map[int64]bool{1000: false, 970: false, 969: true, 100: true} {
		p := New(Codec, codec.S2)
		if p.OnDevice() {
			t.Fatalf("%+v", p)
		}
		encoded, samples := 0, 0
		for range 3 * sampleEvery {
			x, sampled := planned(p, 7, false, 1000)
			if sampled {
				samples++
			}
			if x.Way == Plain {
				if x.Compression != codec.S2 {
					t.Error("an object of a lineage would have containers of another version than those before")
				}
				if p.Expect(Checkpoint{Layout: 7}, 1<<20) != 1<<20 {
					t.Error("a plain checkpoint is expected to become smaller")
				}
				continue
			}
			if x.Compression != codec.S2 || !slices.Equal(x.Choices, choices) {
				t.Fatalf("%+v", x)
			}
			encoded++
			p.Became(7, 1000, became)
		}
		if want := map[bool]int{true: 3 * sampleEvery, false: 3 * mostFailures}[pays]; encoded != want || samples != 3 {
			t.Errorf("%d checkpoints were encoded after %d samples where one of 1000 bytes becomes %d", encoded, samples, became)
		}
	}
	for _, became := range []int64{900, 1000} { // one of three that becomes smaller is enough
		p := New(Codec, codec.Zstd)
		p.Sampled(7, choices, 1000, 1000)
		for i := range 8 {
			switch {
			case i == 2:
				p.Became(7, 1000, became)
			case i%2 == 0:
				p.Became(7, 1000, 1000)
			default:
				p.GaveUp(7)
			}
			if pays := p.Next(Checkpoint{Layout: 7}).Way == Encoded; pays != (i < 2 || became < 1000 && i < 5) {
				t.Errorf("after checkpoint %d, the third of which became %d: %v", i, became, pays)
			}
		}
	}
	p := New(Codec, codec.NoCompression)
	p.Sampled(7, choices, 1000, 500)
	if p.GaveUp(7); p.Next(Checkpoint{Layout: 7}).Way != Encoded {
		t.Error("without a compressor nothing is remembered of one that did not become smaller")
	}
	if p.Became(7, 1000, 1000); p.Next(Checkpoint{Layout: 7}).Way != Encoded {
		t.Error("without a compressor the sample decides")
	}
	if !p.OnDevice() || !New(Auto, codec.NoCompression).OnDevice() || New(Lineage, codec.NoCompression).OnDevice() || New(Raw, codec.NoCompression).OnDevice() {
		t.Error("a device encodes where the method is codec or auto")
	}
}

func TestLayoutsAreBounded(t *testing.T) {
	p := New(Codec, codec.NoCompression)
	for i := range uint64(10 * mostLayouts) {
		p.Sampled(i, choices, 1000, 10)
	}
	if len(p.layouts) > mostLayouts {
		t.Error(len(p.layouts))
	}
}

func TestChoices(t *testing.T) {
	random := make([]byte, 40*codec.ChunkBytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	few := slices.Clone(random)
	for i := range few {
		few[i] &= 7
	}
	for name, x := range map[string]struct {
		bytes []byte
		modes codec.Modes
		most  float64 // of the plain bytes
	}{
		"nothing pays":     {random, 0, 1},
		"one is enough":    {few, codec.Only(codec.Diff, codec.Const), 0.6},
		"constants":        {make([]byte, len(random)), codec.Only(codec.Const), 0.01},
		"nothing was read": {nil, 0, 0},
	} {
		e, err := codec.NewEncoder(codec.Int8, codec.AllModes)
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.Survey(x.bytes, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, encoded := Choose(codec.Int8, &s)
		if c.Kind != codec.Int8 || c.Modes != x.modes || float64(encoded) > x.most*float64(s.Plain) || x.modes == 0 && encoded != s.Plain {
			t.Errorf("%s: %+v, %d of %d", name, c, encoded, s.Plain)
		}
	}
}

// Room is predicted from what checkpoints became lately, generously, and never more than the checkpoint takes in memory. What goes plain needs all of it.
func TestPredictedRoom(t *testing.T) {
	const room = 1 << 20
	p := New(Codec, codec.NoCompression)
	if n := p.Expect(Checkpoint{Layout: 1}, room); n != room {
		t.Errorf("%d bytes of a layout that is not known", n)
	}
	p.Sampled(1, choices, 1000, 500)
	if n := p.Expect(Checkpoint{Layout: 1}, room); n != room {
		t.Errorf("%d bytes before any was encoded", n)
	}
	rapid.Check(t, func(t *rapid.T) {
		p := New(Codec, codec.NoCompression)
		p.Sampled(1, choices, 1000, 500)
		last := 0.0
		for range rapid.IntRange(1, 20).Draw(t, "checkpoints") {
			last = rapid.Float64Range(0.01, 1).Draw(t, "part")
			p.Became(1, room, int64(last*room))
		}
		if n := p.Expect(Checkpoint{Layout: 1}, room); n > room || n < min(room, int64(last*room)) {
			t.Fatalf("%d bytes are expected after one that became %g", n, last*room)
		}
	})
	for range 100 {
		p.Became(1, room, room/10)
	}
	if n := p.Expect(Checkpoint{Layout: 1}, room); n < room/10 || n > room/8 {
		t.Errorf("%d bytes are expected where all became %d", n, room/10)
	}
	for range 2 {
		for !p.Next(Checkpoint{Layout: 1}).Sample {
		}
		p.Sampled(1, choices, 1000, 990)
	}
	if n := p.Expect(Checkpoint{Layout: 1}, room); n != room {
		t.Errorf("%d bytes of a layout that does not pay", n)
	}
	a := New(Auto, codec.NoCompression)
	a.Sampled(1, choices, 1000, 500)
	a.Became(1, room, room/2)
	for range 2 * (trial + 1) {
		a.Flushed(a.Next(Checkpoint{Layout: 1}).Way, room, 0)
	}
	for range trial + 1 {
		a.Flushed(Encoded, room, 1000)
		a.Flushed(Plain, room, 100)
	}
	if n := a.Expect(Checkpoint{Layout: 1}, room); n != room {
		t.Errorf("%d bytes where the plain way is the better one", n)
	}
}

// One checkpoint that has little in common with another ends the trial on a device. Those that have much are encoded with others, and get room for what that comes to.
func TestRelatedCheckpoints(t *testing.T) {
	for part, want := range map[int64]bool{10: true, 300: true, 460: false, 700: false, 1000: false} {
		p, related := New(Auto, codec.NoCompression), 0
		for range 100 {
			x := p.Next(Checkpoint{Layout: 1, Removable: true, Queued: true})
			if x.Sample {
				p.Sampled(1, choices, 1000, 500)
				x = p.Resume(x, 1)
			}
			switch x.Way {
			case Difference:
				related++
				p.Related(1, 1<<20, part<<20/1000, 1<<10*part)
			case Encoded:
				p.Flushed(Encoded, 1<<20, 1<<19)
				p.Became(1, 1000, 500)
			default:
				p.Flushed(Plain, 1<<20, 1<<20)
			}
		}
		if many := related > 50; many != want || !want && (related == 0 || related > 6) {
			t.Errorf("%d of 1000 bytes differ: %d checkpoints are encoded with others", part, related)
		}
		likely := p.Likely(Checkpoint{Layout: 1, Removable: true, Queued: true})
		if room := p.Expect(Checkpoint{Layout: 1, Removable: true, Queued: true}, 1<<30); want && (likely != Difference || room > 1<<30*part*3/1000 || room < 1<<30*part/1000) {
			t.Errorf("%d of 1000 bytes differ: way %d, room for %d", part, likely, room)
		}
		if p.Relates(1) != want {
			t.Errorf("%d of 1000 bytes differ: an anchor is kept: %v", part, !want)
		}
	}
	c := New(Codec, codec.NoCompression)
	if l := New(Lineage, codec.NoCompression); c.Relates(1) || !l.Relates(1) {
		t.Error("the method does not count")
	}
}

// What moves together with another checkpoint goes its way, and ages the layout.
func TestFollowers(t *testing.T) {
	p := New(Codec, codec.NoCompression)
	first, _ := planned(p, 7, false, 500)
	for range sampleEvery {
		if x := p.Follow(first, 7); x.Way != Encoded || !x.Follows {
			t.Fatal(x)
		}
	}
	if !p.Next(Checkpoint{Layout: 7}).Sample {
		t.Error("followers do not count")
	}
}
