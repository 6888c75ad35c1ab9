package codec

import (
	"errors"
	"testing"
)

func TestSample(t *testing.T) {
	plain := make([]byte, 10*ChunkBytes+5)
	fillFamily(plain, BFloat16, 6, 1)
	e, err := NewEncoder(BFloat16, AllModes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Sample(plain, nil, 4)
	if err != nil || p.Chunks != 3 || p.Plain != 2*ChunkBytes+ChunkBytes || p.Alone[Raw] != p.Plain || p.Alone[Exp] < p.Best || p.Best >= p.Plain {
		t.Errorf("%+v, %v", p, err)
	}
	all, err := e.Sample(plain, nil, 1)
	var best int64
	c, _ := Open(encode(t, plain, nil, Options{Kind: BFloat16, Modes: AllModes}), len(plain))
	for i := range c.Chunks() {
		best += int64(c.Entry(i).Bytes)
	}
	if err != nil || all.Best != best || all.Chunks != 11 || all.Plain != int64(len(plain)) {
		t.Errorf("%+v, %v; %d B were written", all, err, best)
	}
	if _, err := e.Sample(plain, plain[1:], 1); !errors.Is(err, ErrReference) {
		t.Errorf("short reference: %v", err)
	}
}

// The plan of all chunks is what an encoding takes, with all modes and with those that the plan names.
func TestPlanOfAll(t *testing.T) {
	plain := make([]byte, 40*ChunkBytes+7)
	for i := range 41 { // mostly weights, some ramps, zeros and noise
		fillFamily(part(plain, i), BFloat16, []int{6, 6, 6, 6, 6, 7, 2, 0}[i%8], uint64(i))
	}
	e, err := NewEncoder(BFloat16, AllModes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Sample(plain, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct { // Diff and Exp are measured equally fast, and Diff is shorter on this region
		share float64
		want  Modes
	}{{0, Only(Const, Diff, Exp)}, {0.2, Only(Const, Diff)}, {9, Only(Const)}} {
		got := p.Modes(c.share)
		if got != c.want {
			t.Errorf("at most %v more: modes %06b, want %06b", c.share, got, c.want)
		}
		n := len(encode(t, plain, nil, Options{Kind: BFloat16, Modes: got})) - PayloadsAt(len(plain))
		if most := (1 + c.share) * float64(p.Container-11*41); float64(n) > most {
			t.Errorf("at most %v more: %d B of payloads, more than %v", c.share, n, most)
		}
	}
	container := encode(t, plain, nil, Options{Kind: BFloat16, Modes: AllModes})
	if n := int64(len(container)) - p.Container; n < headerBytes || n > headerBytes+payloadAlign {
		t.Errorf("%d B are expected, without the header, and the container has %d", p.Container, len(container))
	}
	if got, want := p.Ratio(), float64(len(plain))/float64(p.Container); got != want {
		t.Errorf("ratio %v, want %v", got, want)
	}
}

// With one mode, all are equal, and the fastest are taken of those with equal sizes.
func TestModesOfUnchanged(t *testing.T) {
	plain := make([]byte, 20*ChunkBytes)
	fillFamily(plain, Float32, 6, 1)
	e, err := NewEncoder(Float32, AllModes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Survey(plain, plain)
	if err != nil || p.Modes(0.05) != Only(Const, Xrz) || p.Wins[Xrz] != p.Chunks {
		t.Errorf("%06b, %+v, %v", p.Modes(0.05), p, err)
	}
	var none Plan
	if none.Ratio() != 1 || none.Modes(0) != Only(Const) {
		t.Errorf("without samples: ratio %v, modes %06b", none.Ratio(), none.Modes(0))
	}
}

// A survey measures one chunk of each stretch.
func TestSurvey(t *testing.T) {
	e, err := NewEncoder(Int32, Only())
	if err != nil {
		t.Fatal(err)
	}
	for chunks, want := range map[int]int{0: 0, 1: 1, 7: 7, 8: 8, 9: 8, 2047: 8, 256 * 9: 9, 256 * 40: 40} {
		p, err := e.Survey(make([]byte, chunks*ChunkBytes), nil)
		if err != nil || p.Chunks != want || p.Plain != int64(want*ChunkBytes) {
			t.Errorf("%d chunks: %+v, %v", chunks, p, err)
		}
	}
	if _, err := e.Survey(make([]byte, 5), make([]byte, 4)); !errors.Is(err, ErrReference) {
		t.Errorf("short reference: %v", err)
	}
}

// Where a part of the region differs the survey sees it: its places are all over the region.
func TestSurveySeesAll(t *testing.T) {
	onlyOne(t)
	plain := make([]byte, 3000*ChunkBytes)
	fillFamily(plain[len(plain)/2:], Int8, 0, 1)
	e, err := NewEncoder(Int8, AllModes)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Survey(plain, nil)
	if half := p.Chunks / 2; err != nil || p.Wins[Const] < half || p.Wins[Raw] < half {
		t.Errorf("%+v, %v", p, err)
	}
}

// Of sets that are measured equally fast the one with the shortest payloads is named.
func TestModesOfEqualEffort(t *testing.T) {
	p := Plan{Best: 100}
	for set := range p.sets {
		p.sets[set] = 1000
	}
	p.sets[Only(Const, Diff)], p.sets[Only(Const, Exp)], p.sets[Only(Const, Xrz)], p.sets[AllModes] = 120, 110, 115, 100
	for share, want := range map[float64]Modes{0: AllModes, 0.12: Only(Const, Exp), 0.3: Only(Const, Exp), 0.05: AllModes} {
		if got := p.Modes(share); got != want {
			t.Errorf("at most %v more: %06b, want %06b", share, got, want)
		}
	}
}
