package description

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// The dtypes are those of the regions, whatever stands before and between them.
func TestDtypes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	for range 2000 {
		d := right(r)
		l := d.layout()
		if Check(l) != nil {
			continue // some shapes have more elements than a client could visit
		}
		var want []string
		for _, x := range d.regions {
			want = append(want, x.dtype)
		}
		if got := Dtypes(l); !slices.Equal(got, want) {
			t.Fatalf("%q, the regions have %q", got, want)
		}
		l.Text = l.Text[:len(l.Text)-min(len(l.Text), 1+r.IntN(20))]
		if Check(l) != nil && Dtypes(l) != nil {
			t.Fatal("dtypes of a text that is cut off")
		}
	}
}

// The names are those of the regions, and numbers where these have none.
func TestRegionNames(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	for range 2000 {
		d := right(r)
		l := d.layout()
		if Check(l) != nil {
			continue
		}
		names, seen := Names(l), map[string]bool{}
		if len(names) != len(d.regions) {
			t.Fatalf("%d names of %d regions", len(names), len(d.regions))
		}
		for i, x := range d.regions {
			if d.sequence != sequenceKind && names[i] != x.name || seen[names[i]] {
				t.Fatalf("region %d is called %q, and its name is %q", i, names[i], x.name)
			}
			seen[names[i]] = true
		}
		l.Text = ""
		for i, name := range Names(l) {
			if name != "\x00"+strconv.Itoa(i) {
				t.Fatalf("region %d of a text that is not there is called %q", i, name)
			}
		}
	}
}
