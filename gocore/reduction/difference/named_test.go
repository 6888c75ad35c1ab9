package difference

import (
	"errors"
	"slices"
	"testing"
)

// A map that is made of regions is checked as one that is read.
func TestNewMap(t *testing.T) {
	regions := func() []Located {
		return []Located{
			{Name: "a", Size: 100, Runs: []Run{{Checkpoint: 3}, {At: 32, Offset: 7, Checkpoint: 5, Period: 32}, {At: 96, Checkpoint: Void}}},
			{Name: "empty"},
			{Name: "b", Size: 1, Runs: []Run{{Checkpoint: 9}}},
		}
	}
	m, err := NewMap(9, regions())
	if err != nil || m.Find("b") != &m.Regions[2] || m.Find("c") != nil {
		t.Fatalf("%+v: %v", m, err)
	}
	if !slices.Equal(m.Named(), []uint32{3, 5, 9}) || !slices.Equal(m.References(), []uint32{3, 5}) {
		t.Errorf("it names %d, and refers to %d", m.Named(), m.References())
	}
	if without := m.Without(9, 3, 77); !slices.Equal(without.Named(), []uint32{5}) || !slices.Equal(m.Named(), []uint32{3, 5, 9}) {
		t.Errorf("without two it names %d, and the map itself %d", without.Named(), m.Named())
	}
	if read, err := ParseMap(m.Append(nil)); err != nil || string(read.Append(nil)) != string(m.Append(nil)) {
		t.Errorf("written and read it is %+v: %v", read, err)
	}
	for what, spoil := range map[string]func(list []Located){
		"a name twice":         func(list []Located) { list[1].Name = "a" },
		"a long name":          func(list []Located) { list[1].Name = string(make([]byte, MaxName+1)) },
		"no runs":              func(list []Located) { list[2].Runs = nil },
		"runs of nothing":      func(list []Located) { list[2].Size = 0 },
		"too large":            func(list []Located) { list[2].Size = MaxBytes + 1 },
		"a gap":                func(list []Located) { list[0].Runs[0].At = 1 },
		"out of order":         func(list []Located) { list[0].Runs[2].At = 32 },
		"behind the end":       func(list []Located) { list[0].Runs[2].At = 100 },
		"a large offset":       func(list []Located) { list[0].Runs[0].Offset = MaxBytes + 1 },
		"a later checkpoint":   func(list []Located) { list[0].Runs[0].Checkpoint = 10 },
		"an impossible period": func(list []Located) { list[0].Runs[1].Period = 33 },
	} {
		list := regions()
		spoil(list)
		if _, err := NewMap(9, list); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := NewMap(MaxCheckpoint+1, nil); !errors.Is(err, ErrFormat) {
		t.Errorf("too large a number: %v", err)
	}
}

// A difference without its first occurrences has the metadata of one with them, but cannot be appended.
func TestLeaveOut(t *testing.T) {
	d := &Difference{
		Checkpoint: 4, Method: Runs, Kind: 1, Chunk: 32, Regions: []Region{{Name: "a", Size: 100}, {Name: "b", Size: 40}},
		First:   []Entry{{Position: 0, Extent: 2}, {Position: 3, Extent: 1}, {Position: 4, Extent: 1}},
		Shifted: []Shift{{Entry: Entry{Position: 2, Extent: 1}, Checkpoint: 4}, {Entry: Entry{Position: 5, Extent: 1}, Checkpoint: 4, Offset: 3}},
		Data:    make([]byte, 64+4+32),
	}
	whole, err := d.Append(nil)
	if err != nil || d.Stored() != 100 {
		t.Fatalf("%d bytes: %v", d.Stored(), err)
	}
	d.LeaveOut(100)
	metadata, err := d.AppendMetadata([]byte("before"))
	if want := "before" + string(whole[:len(whole)-100]); err != nil || string(metadata) != want || d.Stored() != 100 {
		t.Errorf("other metadata, or %d bytes: %v", d.Stored(), err)
	}
	var visited [][3]uint64
	if err := d.Firsts(func(region int, at, bytes uint64) { visited = append(visited, [3]uint64{uint64(region), at, bytes}) }); err != nil {
		t.Error(err)
	}
	if want := [][3]uint64{{0, 0, 64}, {0, 96, 4}, {1, 0, 32}}; !slices.Equal(visited, want) {
		t.Errorf("the first occurrences are %d, not %d", visited, want)
	}
	if _, err := d.Append(nil); !errors.Is(err, ErrFormat) {
		t.Errorf("it is appended without its first occurrences: %v", err)
	}
}
