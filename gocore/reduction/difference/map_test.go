package difference

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/reduction/digest"
)

func baseMap() *Map {
	return &Map{
		Checkpoint: 8, Regions: []Located{{Name: "a", Size: 64, Runs: []Run{{At: 0, Offset: 7, Checkpoint: 8}}}}, index: map[string]int{"a": 0},
	}
}

func TestResolve(t *testing.T) {
	for m := List; m <= Runs; m++ {
		d := sample(m)
		got, err := d.Resolve(baseMap())
		if err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		a := []Run{{0, 7, 8, 0}, {64, 0, 9, 0}, {128, 0, 9, 0}}
		b := []Run{{0, 1000, 2, 0}}
		if m != Tree { // Tree's entry is a node with a source of two chunks
			b[0].Period = 32
		}
		if !reflect.DeepEqual(got.Regions[0].Runs, a) || !reflect.DeepEqual(got.Regions[1].Runs, b) {
			t.Errorf("%s: %v", m, got.Regions)
		}
		if refs := got.References(); !reflect.DeepEqual(refs, []uint32{2, 8}) {
			t.Errorf("%s: %v", m, refs)
		}
		if got.Runs() != 4 {
			t.Errorf("%s: %d runs", m, got.Runs())
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	short, other, nameless := baseMap(), baseMap(), baseMap()
	short.Regions[0].Size = 63
	other.Checkpoint = 7
	nameless.index = nil
	for name, base := range map[string]*Map{"missing": nil, "another": other, "too short": short, "without the region": nameless} {
		if _, err := sample(Tree).Resolve(base); !errors.Is(err, ErrBase) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, list := range map[string][]uint32{"too few": {2}, "too many": {2, 3, 8}} {
		d := sample(Tree)
		d.References = list
		if _, err := d.Resolve(baseMap()); !errors.Is(err, ErrFormat) {
			t.Errorf("references %s: %v", name, err)
		}
	}
}

func TestWithout(t *testing.T) {
	m, err := sample(Tree).Resolve(baseMap())
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Without(2).References(); !reflect.DeepEqual(got, []uint32{8}) {
		t.Errorf("%v", got)
	}
	if got := m.References(); !reflect.DeepEqual(got, []uint32{2, 8}) {
		t.Errorf("Without changed the map: %v", got)
	}
	if (*Map)(nil).Without(1) != nil {
		t.Error("no map without a checkpoint is a map")
	}
	read := func(uint32, uint64, []byte) error { return nil }
	if err := m.Without(8).Find("a").Read(0, make([]byte, 65), read); !errors.Is(err, ErrVoid) {
		t.Errorf("%v", err)
	}
	if err := m.Without(8).Find("a").Read(64, make([]byte, 64), read); err != nil {
		t.Errorf("behind the void: %v", err)
	}
}

// Reads of any range give the bytes that a plain expansion of the runs gives.
func TestRead(t *testing.T) {
	object := make([]byte, 1000)
	for i := range object {
		object[i] = byte(i * 37)
	}
	rapid.Check(t, func(t *rapid.T) {
		l := Located{Name: "a"}
		var plain []byte
		for range rapid.IntRange(1, 12).Draw(t, "pieces") {
			chunks := rapid.IntRange(1, 4).Draw(t, "chunks")
			offset := rapid.IntRange(0, 20).Draw(t, "offset") * 8
			period := rapid.SampledFrom([]uint32{0, 32}).Draw(t, "period")
			r := Run{At: uint64(len(plain)), Offset: uint64(offset), Checkpoint: 1, Period: period}
			for i := range chunks {
				from := offset
				if period == 0 {
					from += i * 32
				}
				plain = append(plain, object[from:from+32]...)
			}
			l.add(r, uint64(chunks*32), 32)
		}
		l.Size = uint64(len(plain))
		from := rapid.IntRange(0, len(plain)).Draw(t, "from")
		dst := make([]byte, rapid.IntRange(0, len(plain)-from).Draw(t, "length"))
		given := 0
		err := l.Read(uint64(from), dst, func(checkpoint uint32, offset uint64, p []byte) error {
			given += copy(p, object[offset:])
			return nil
		})
		if err != nil || !bytes.Equal(dst, plain[from:from+len(dst)]) || given > len(dst) {
			t.Fatalf("from %d: %v\n%v\nwant\n%v", from, err, dst, plain[from:from+len(dst)])
		}
	})
}

func TestReadRefuses(t *testing.T) {
	l := baseMap().Regions[0]
	broken := errors.New("broken")
	read := func(uint32, uint64, []byte) error { return broken }
	if err := l.Read(0, make([]byte, 1), read); !errors.Is(err, ErrRead) || !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		from uint64
		n    int
	}{{65, 0}, {64, 1}, {0, 65}, {1 << 63, 1}} {
		if err := l.Read(c.from, make([]byte, c.n), read); !errors.Is(err, ErrBase) {
			t.Errorf("from %d: %v", c.from, err)
		}
	}
	if err := l.Read(64, nil, read); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

func TestRestoreVerifies(t *testing.T) {
	d := sample(Full)
	for i := range d.Data {
		d.Data[i] = byte(i)
	}
	f := digest.New(d.Kind, d.Seed)
	d.Regions[0].Checksum, d.Regions[1].Checksum = f.Sum(d.Data[:157]), f.Sum(d.Data[157:])
	m, err := d.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	read := func(_ uint32, offset uint64, p []byte) error {
		copy(p, d.Data[offset:])
		return nil
	}
	dst := make([]byte, 157)
	if err := d.Restore(m, 0, dst, read); err != nil || !bytes.Equal(dst, d.Data[:157]) {
		t.Errorf("%v", err)
	}
	d.Data[33] ^= 1
	if err := d.Restore(m, 0, dst, read); !errors.Is(err, ErrChecksum) {
		t.Errorf("one bit: %v", err)
	}
	if err := d.Restore(m, 1, make([]byte, 64), read); err != nil {
		t.Errorf("the other region: %v", err)
	}
	if err := d.Restore(m, 0, dst[:156], read); !errors.Is(err, ErrBase) {
		t.Errorf("too short: %v", err)
	}
	if err := d.Restore(nil, 0, dst, read); !errors.Is(err, ErrBase) {
		t.Errorf("without a map: %v", err)
	}
}

func TestMapForm(t *testing.T) {
	m, err := sample(Runs).Resolve(baseMap())
	if err != nil {
		t.Fatal(err)
	}
	text := m.Append([]byte("before"))[6:]
	got, err := ParseMap(text)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("%v: %v, want %v", err, got, m)
	}
	for n := range text {
		if _, err := ParseMap(text[:n]); !errors.Is(err, ErrFormat) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	for name, change := range map[string]func(*Map){
		"name twice":   func(m *Map) { m.Regions[1].Name = "a" },
		"beginning":    func(m *Map) { m.Regions[0].Runs[0].At = 1 },
		"order":        func(m *Map) { m.Regions[0].Runs[2].At = 64 },
		"behind":       func(m *Map) { m.Regions[0].Runs[2].At = m.Regions[0].Size },
		"later":        func(m *Map) { m.Regions[0].Runs[1].Checkpoint = 10 },
		"offset":       func(m *Map) { m.Regions[0].Runs[1].Offset = 1 << 48 },
		"period":       func(m *Map) { m.Regions[1].Runs[0].Period = 33 },
		"no runs":      func(m *Map) { m.Regions[1].Runs = nil },
		"runs of none": func(m *Map) { m.Regions[1].Size = 0 },
		"size":         func(m *Map) { m.Regions[1].Size = 1 << 48 },
		"checkpoint":   func(m *Map) { m.Checkpoint = Void },
	} {
		m, _ := sample(Runs).Resolve(baseMap())
		change(m)
		if _, err := ParseMap(m.Append(nil)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
