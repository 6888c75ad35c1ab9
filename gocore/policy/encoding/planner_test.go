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

func TestRawPlansNothing(t *testing.T) {
	p := New(Raw, codec.NoCompression)
	for range 100 {
		if x := p.Next(1); x.Way != Plain {
			t.Fatal(x)
		}
	}
}

// A layout is sampled first and from time to time, and what does not become smaller goes plain in between.
func TestSamples(t *testing.T) {
	for pays, encoded := range map[bool]int64{true: 900, false: 980} {
		p, samples := New(Codec, codec.NoCompression), 0
		for i := range 4 * sampleEvery {
			x := p.Next(7)
			if x.Way == Encoded && x.Choices == nil {
				samples++
				p.Sampled(7, choices, 1000, encoded)
				x = p.Next(7)
			}
			if (x.Way == Encoded) != pays || pays && !slices.Equal(x.Choices, choices) {
				t.Fatalf("checkpoint %d: %v", i, x)
			}
		}
		if samples != 4 {
			t.Errorf("%d samples", samples)
		}
	}
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
			x := p.Next(7)
			if x.Way == Encoded && x.Choices == nil {
				if samples++; x.Compression != codec.S2 {
					t.Fatalf("%+v", x)
				}
				p.Sampled(7, choices, 1000, 1000)
				x = p.Next(7)
			}
			if x.Way == Plain {
				if x.Compression != codec.S2 {
					t.Error("an object of a lineage would have containers of another version than those before")
				}
				if p.Expect(7, 1<<20) != 1<<20 {
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
			if pays := p.Next(7).Way == Encoded; pays != (i < 2 || became < 1000 && i < 5) {
				t.Errorf("after checkpoint %d, the third of which became %d: %v", i, became, pays)
			}
		}
	}
	p := New(Codec, codec.NoCompression)
	p.Sampled(7, choices, 1000, 500)
	if p.GaveUp(7); p.Next(7).Way != Encoded {
		t.Error("without a compressor nothing is remembered of one that did not become smaller")
	}
	if p.Became(7, 1000, 1000); p.Next(7).Way != Encoded {
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

// The automatic method loses at most a few percent against the better way, whichever that is, and however the ways differ from some checkpoint on.
func TestAutoLosesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cost := [ways]float64{rapid.Float64Range(0.1, 10).Draw(t, "plain"), rapid.Float64Range(0.1, 10).Draw(t, "encoded")}
		loads := rapid.Bool().Draw(t, "loads")
		const plain, count = 1 << 20, 4000
		p := New(Auto, codec.NoCompression)
		spent, best, trials := 0.0, 0.0, 0
		for i := range count {
			if i == count/2 && rapid.Bool().Draw(t, "changes") {
				cost[Plain], cost[Encoded] = cost[Encoded], cost[Plain]
			}
			x := p.Next(1)
			if x.Way == Encoded && x.Choices == nil {
				p.Sampled(1, choices, 1000, 500)
				x = p.Next(1)
			}
			p.Flushed(x.Way, plain, int64(cost[x.Way]*plain))
			if loads {
				p.Loaded(x.Way, plain, int64(cost[x.Way]*plain))
			}
			spent, best = spent+cost[x.Way], best+min(cost[Plain], cost[Encoded])
			if cost[x.Way] > min(cost[Plain], cost[Encoded]) {
				trials++
			}
		}
		worst := max(cost[Plain], cost[Encoded]) - min(cost[Plain], cost[Encoded])
		if tries := float64(3*9+count/2/mostWait+mostWait) * worst; spent > 1.03*best+tries {
			t.Fatalf("%g for %g, with %d trials", spent, best, trials)
		}
	})
}

// In the long run one way is tried once among so many of the other.
func TestTrialsBecomeRare(t *testing.T) {
	for _, cheap := range []Way{Plain, Encoded} {
		p, tried := New(Auto, codec.NoCompression), 0
		p.Sampled(1, choices, 1000, 500)
		for i := range 10_000 {
			x := p.Next(1)
			if x.Choices == nil && x.Way == Encoded {
				p.Sampled(1, choices, 1000, 500)
				x = p.Next(1)
			}
			ns := int64(1 << 20)
			if x.Way != cheap {
				if ns *= 2; i > 2000 {
					tried++
				}
			}
			p.Flushed(x.Way, 1<<20, ns)
		}
		if tried < 8000/mostWait-2 || tried > 8000/mostWait+2 {
			t.Errorf("%d trials of the other way than %d", tried, cheap)
		}
	}
}

// Encoding that costs a little more time is chosen for the room that it saves, and small transfers say nothing.
func TestTheWaysCompared(t *testing.T) {
	for _, x := range []struct {
		plain, encoded int64
		want           Way
	}{{1000, 1000, Encoded}, {1000, 1019, Encoded}, {1000, 1030, Plain}, {1000, 100, Encoded}} {
		c := costs{}
		for range enough {
			c.observe(down, Plain, 1<<20, x.plain)
			c.observe(down, Encoded, 1<<20, x.encoded)
			c.observe(down, Encoded, 1<<10, 1)
		}
		if got := c.next(); got != x.want {
			t.Errorf("%+v: %d", x, got)
		}
	}
	c := costs{}
	for range enough {
		c.observe(down, Plain, 1<<20, 100)
		c.observe(down, Encoded, 1<<20, 80)
		c.observe(up, Plain, 1<<20, 50)
	}
	if c.better() != Encoded {
		t.Error("loads of one way alone count")
	}
	c.observe(up, Encoded, 1<<20, 100)
	if c.observe(up, Encoded, 1<<20, 100); c.better() != Plain {
		t.Error("loads do not count")
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
	if n := p.Expect(1, room); n != room {
		t.Errorf("%d bytes of a layout that is not known", n)
	}
	p.Sampled(1, choices, 1000, 500)
	if n := p.Expect(1, room); n != room {
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
		if n := p.Expect(1, room); n > room || n < min(room, int64(last*room)) {
			t.Fatalf("%d bytes are expected after one that became %g", n, last*room)
		}
	})
	for range 100 {
		p.Became(1, room, room/10)
	}
	if n := p.Expect(1, room); n < room/10 || n > room/8 {
		t.Errorf("%d bytes are expected where all became %d", n, room/10)
	}
	p.Sampled(1, choices, 1000, 990)
	if n := p.Expect(1, room); n != room {
		t.Errorf("%d bytes of a layout that does not pay", n)
	}
	a := New(Auto, codec.NoCompression)
	a.Sampled(1, choices, 1000, 500)
	a.Became(1, room, room/2)
	for range enough {
		a.Flushed(Encoded, room, 1000)
		a.Flushed(Plain, room, 100)
	}
	if n := a.Expect(1, room); n != room {
		t.Errorf("%d bytes where the plain way is the better one", n)
	}
}

// Two transfers that run beside each other end together: the first is told of the time of both, the second of next to nothing. Both count.
func TestTransfersBesideEachOther(t *testing.T) {
	for _, cheap := range []Way{Plain, Encoded} {
		p, right := New(Auto, codec.NoCompression), 0
		p.Sampled(1, choices, 1000, 500)
		for range 200 {
			x := p.Next(1)
			if x.Choices == nil && x.Way == Encoded {
				p.Sampled(1, choices, 1000, 500)
				x = p.Next(1)
			}
			cost := int64(4 << 20)
			if x.Way == cheap {
				cost, right = 1<<20, right+2
			}
			p.Flushed(x.Way, 1<<20, cost)
			p.Flushed(x.Way, 1<<20, cost/100)
		}
		if right < 2*180 {
			t.Errorf("%d of 400 checkpoints went the cheaper way, %d", right, cheap)
		}
	}
}

// Transfers whose times vary by a factor of two and more around a way's cost do not mislead the decision for long, where the ways differ by a fifth.
func TestNoiseIsOutvoted(t *testing.T) {
	for _, cheap := range []Way{Plain, Encoded} {
		r := rand.New(rand.NewPCG(5, 5))
		p, right := New(Auto, codec.NoCompression), 0
		p.Sampled(1, choices, 1000, 500)
		const count = 4000
		for range count {
			x := p.Next(1)
			if x.Choices == nil && x.Way == Encoded {
				p.Sampled(1, choices, 1000, 500)
				x = p.Next(1)
			}
			cost := float64(1 << 20)
			if x.Way != cheap {
				cost *= 1.25
			} else {
				right++
			}
			p.Flushed(x.Way, 1<<20, int64(cost*(0.7+r.ExpFloat64()/2)))
		}
		if right < count*9/10 {
			t.Errorf("%d of %d checkpoints went the cheaper way, %d", right, count, cheap)
		}
	}
}
