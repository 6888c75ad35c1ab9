package description

import (
	"math/rand/v2"
	"slices"
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
