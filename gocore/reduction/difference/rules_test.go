package difference

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"velocpy/gocore/reduction/digest"
)

// sample is a valid difference: chunks 0 and 1 of "a" are fixed, 2 and 3 first, 4 shifted within it; "b" is shifted from checkpoint 2.
func sample(method Method) *Difference {
	d := &Difference{
		Checkpoint: 9, Base: 8, HasBase: true, Method: method, Kind: digest.XXH3, Chunk: 32,
		Regions: []Region{{Name: "a", Size: 5*32 - 3}, {Name: "b", Size: 64}}, References: []uint32{2, 8}, Data: make([]byte, 64),
	}
	switch method {
	case Tree:
		d.First, d.Shifted = []Entry{{2, 1}}, []Shift{{Entry: Entry{4, 2}}, {Entry: Entry{5, 1}, Checkpoint: 2, Offset: 1000}}
	case Runs:
		d.First, d.Shifted = []Entry{{2, 2}}, []Shift{{Entry: Entry{4, 1}}, {Entry: Entry{5, 2}, Checkpoint: 2, Offset: 1000, Repeat: true}}
	case List:
		d.First = []Entry{{2, 0}, {3, 0}}
		d.Shifted = []Shift{{Entry: Entry{4, 0}}, {Entry: Entry{5, 0}, Checkpoint: 2, Offset: 1000}, {Entry: Entry{6, 0}, Checkpoint: 2, Offset: 1000}}
	case Basic:
		d.Changed = []byte{0b1101100}
		d.Data = make([]byte, 64+64)
	case Full:
		d.HasBase, d.Base, d.References, d.Data = false, 0, nil, make([]byte, 5*32-3+64)
	}
	if method > Basic {
		d.Shifted[0].Checkpoint = 9
	}
	return d
}

func TestSamplesAreValid(t *testing.T) {
	for m := Full; m <= Runs; m++ {
		text, err := sample(m).Append([]byte("before"))
		if err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		d, err := Parse(text[6:])
		if err != nil {
			t.Fatalf("%s: %v", m, err)
		}
		again, err := d.Append(nil)
		if err != nil || !bytes.Equal(again, text[6:]) {
			t.Errorf("%s: not the same again: %v", m, err)
		}
		if d.Size() != 5*32-3+64 || d.Method != m {
			t.Errorf("%s: %v", m, d)
		}
	}
}

// Each rule of the format refuses the difference that breaks it, and nothing else of it.
func TestRules(t *testing.T) {
	many := func(n int) []uint32 {
		list := make([]uint32, n)
		for i := range list {
			list[i] = uint32(i)
		}
		return list
	}
	for name, c := range map[string]struct {
		method Method
		want   error
		change func(*Difference)
	}{
		"method":                    {Tree, ErrFormat, func(d *Difference) { d.Method = 6 }},
		"function":                  {Tree, ErrFormat, func(d *Difference) { d.Kind = 0 }},
		"chunk":                     {Tree, ErrFormat, func(d *Difference) { d.Chunk = 48 }},
		"checkpoint":                {Tree, ErrLimit, func(d *Difference) { d.Checkpoint = 1<<32 - 1 }},
		"later base":                {Tree, ErrFormat, func(d *Difference) { d.Base = 9 }},
		"base without flag":         {Full, ErrFormat, func(d *Difference) { d.Base = 8 }},
		"base without duplicates":   {Full, ErrFormat, func(d *Difference) { d.HasBase, d.Base = true, 8 }},
		"fixed without base":        {Tree, ErrFormat, func(d *Difference) { d.HasBase, d.Base = false, 0 }},
		"unneeded base":             {Basic, ErrFormat, func(d *Difference) { d.Changed[0], d.Data = 0x7f, make([]byte, 7*32-3) }},
		"references":                {Tree, ErrLimit, func(d *Difference) { d.Checkpoint, d.References = 1<<20, many(1<<15) }},
		"reference order":           {Tree, ErrFormat, func(d *Difference) { d.References = []uint32{8, 2} }},
		"reference twice":           {Tree, ErrFormat, func(d *Difference) { d.References = []uint32{2, 2, 8} }},
		"reference later":           {Tree, ErrFormat, func(d *Difference) { d.References = []uint32{2, 9} }},
		"reference missing":         {Tree, ErrFormat, func(d *Difference) { d.References = []uint32{8} }},
		"references of full":        {Full, ErrFormat, func(d *Difference) { d.References = []uint32{1} }},
		"name twice":                {Tree, ErrFormat, func(d *Difference) { d.Regions[1].Name = "a" }},
		"long name":                 {Tree, ErrLimit, func(d *Difference) { d.Regions[1].Name = strings.Repeat("x", 1<<16) }},
		"large region":              {Tree, ErrLimit, func(d *Difference) { d.Regions[1].Size = 1 << 48 }},
		"large regions":             {Tree, ErrLimit, func(d *Difference) { d.Regions[0].Size, d.Regions[1].Size = 1<<47, 1<<47 }},
		"many chunks":               {Tree, ErrLimit, func(d *Difference) { d.Regions[1].Size = 1<<45 + 1 }},
		"large regions, few chunks": {Full, ErrLimit, func(d *Difference) { d.Chunk, d.Regions[0].Size, d.Regions[1].Size = 4096, 1<<47, 1<<47 }},
		"entries of basic":          {Basic, ErrFormat, func(d *Difference) { d.First = []Entry{{0, 0}} }},
		"shifts of basic":           {Basic, ErrFormat, func(d *Difference) { d.Shifted = []Shift{{Entry: Entry{0, 0}}} }},
		"first position limit":      {Runs, ErrLimit, func(d *Difference) { d.First[0].Position = 1 << 40 }},
		"shift extent limit":        {Runs, ErrLimit, func(d *Difference) { d.Shifted[0].Extent = 1 << 24 }},
		"data short":                {Tree, ErrFormat, func(d *Difference) { d.Data = d.Data[:63] }},
		"data long":                 {Tree, ErrFormat, func(d *Difference) { d.Data = make([]byte, 65) }},
		"entries overlap":           {Runs, ErrFormat, func(d *Difference) { d.First[0].Extent = 3; d.Data = make([]byte, 93) }},
		"entries equal":             {Tree, ErrFormat, func(d *Difference) { d.First = append(d.First, Entry{5, 0}); d.Data = make([]byte, 96) }},
		"entry order":               {List, ErrFormat, func(d *Difference) { d.First[0], d.First[1] = d.First[1], d.First[0] }},
		"shift order":               {List, ErrFormat, func(d *Difference) { d.Shifted[0], d.Shifted[1] = d.Shifted[1], d.Shifted[0] }},
		"entry behind":              {List, ErrFormat, func(d *Difference) { d.First = append(d.First, Entry{7, 0}); d.Data = make([]byte, 96) }},
		"shift behind":              {List, ErrFormat, func(d *Difference) { d.Shifted[2].Position = 7 }},
		"entry over region":         {Runs, ErrFormat, func(d *Difference) { d.Shifted[0].Extent = 2 }},
		"empty run":                 {Runs, ErrFormat, func(d *Difference) { d.First[0].Extent = 0 }},
		"level":                     {Tree, ErrFormat, func(d *Difference) { d.Shifted[1].Extent = 2 }},
		"high level":                {Tree, ErrFormat, func(d *Difference) { d.Shifted[1].Extent = 64 }},
		"alignment":                 {Tree, ErrFormat, func(d *Difference) { d.First[0] = Entry{3, 1} }},
		"extent of list":            {List, ErrFormat, func(d *Difference) { d.First[0].Extent = 1 }},
		"extent limit":              {Runs, ErrLimit, func(d *Difference) { d.First[0].Extent = 1 << 24 }},
		"position limit":            {Runs, ErrLimit, func(d *Difference) { d.Shifted[1].Position = 1 << 40 }},
		"entries of full":           {Full, ErrFormat, func(d *Difference) { d.First = []Entry{{0, 0}} }},
		"later source":              {List, ErrFormat, func(d *Difference) { d.Shifted[1].Checkpoint = 10 }},
		"unlisted source":           {List, ErrFormat, func(d *Difference) { d.Shifted[1].Checkpoint = 3 }},
		"source behind":             {List, ErrFormat, func(d *Difference) { d.Shifted[0].Offset = 64 - 28 }},
		"source far":                {List, ErrFormat, func(d *Difference) { d.Shifted[0].Offset = 1<<48 - 1 }},
		"offset limit":              {List, ErrFormat, func(d *Difference) { d.Shifted[1].Offset = 1 << 48 }},
		"repeat of tree":            {Tree, ErrFormat, func(d *Difference) { d.Shifted[1].Repeat = true }},
		"repeat of one":             {Runs, ErrFormat, func(d *Difference) { d.Shifted[0].Repeat = true }},
		"repeat of a tail":          {Runs, ErrFormat, func(d *Difference) { d.Regions[1].Size = 63 }},
		"short bitmap":              {Basic, ErrFormat, func(d *Difference) { d.Changed = nil }},
		"long bitmap":               {Basic, ErrFormat, func(d *Difference) { d.Changed = append(d.Changed, 0) }},
		"bit behind":                {Basic, ErrFormat, func(d *Difference) { d.Changed[0] |= 0x80 }},
		"bitmap of list":            {List, ErrFormat, func(d *Difference) { d.Changed = []byte{0} }},
	} {
		d := sample(c.method)
		c.change(d)
		if text, err := d.Append([]byte("before")); !errors.Is(err, c.want) || string(text) != "before" {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// The greatest valid source of the checkpoint's own data, and each level up to the highest.
func TestEdges(t *testing.T) {
	d := sample(List)
	d.Shifted[0].Offset = 64 - 29
	if _, err := d.Append(nil); err != nil {
		t.Error(err)
	}
	for level := uint32(0); level <= 3; level++ { // chunk 4 of 5 is alone in its nodes of levels 0 to 2
		d := sample(Tree)
		d.Shifted[0].Extent = level
		if _, err := d.Append(nil); (err == nil) != (level <= 2) {
			t.Errorf("level %d: %v", level, err)
		}
	}
}

// What is at a limit is valid, or is refused for another reason.
func TestLimits(t *testing.T) {
	references := make([]uint32, MaxReferences)
	for i := range references {
		references[i] = uint32(i) + 2
	}
	for name, c := range map[string]struct {
		want   error
		method Method
		change func(*Difference)
	}{
		"checkpoint": {nil, Full, func(d *Difference) { d.Checkpoint = MaxCheckpoint }},
		"references": {nil, List, func(d *Difference) {
			d.Checkpoint, d.References = 1<<20, references
			d.Shifted[0].Checkpoint = 1 << 20
		}},
		"one reference": {nil, List, func(d *Difference) { d.References = []uint32{2} }},
		"name":          {nil, Full, func(d *Difference) { d.Regions[0].Name = strings.Repeat("x", MaxName) }},
		"size":          {ErrFormat, Full, func(d *Difference) { d.Chunk, d.Regions[0].Size, d.Regions[1].Size = 4096, MaxBytes, 0 }},
		"sizes":         {ErrFormat, Full, func(d *Difference) { d.Chunk, d.Regions[0].Size, d.Regions[1].Size = 4096, MaxBytes-1, 1 }},
		"chunks":        {ErrFormat, Full, func(d *Difference) { d.Regions[0].Size, d.Regions[1].Size = 32*MaxChunks, 0 }},
	} {
		d := sample(c.method)
		c.change(d)
		text, err := d.Append(nil)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
			continue
		}
		if c.want != nil {
			continue
		}
		if again, err := Parse(text); err != nil || again.Checkpoint != d.Checkpoint || len(again.References) != len(d.References) || again.Regions[0] != d.Regions[0] {
			t.Errorf("%s: read again: %v", name, err)
		}
	}
}

func TestValidChunk(t *testing.T) {
	for chunk := range 9000 {
		want := chunk == 32 || chunk == 64 || chunk == 128 || chunk == 256 || chunk == 512 || chunk == 1024 || chunk == 2048 || chunk == 4096
		if ValidChunk(chunk) != want {
			t.Errorf("%d: %v", chunk, !want)
		}
	}
}

func TestNames(t *testing.T) {
	for m, want := range map[Method]string{0: "unknown", Full: "full", Basic: "basic", List: "list", Tree: "tree", Runs: "runs", 6: "unknown"} {
		if m.String() != want || m.Valid() != (want != "unknown") {
			t.Errorf("%d: %s", m, m)
		}
	}
}
