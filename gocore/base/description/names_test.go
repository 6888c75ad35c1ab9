package description

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"velocpy/gocore/model"
)

// The names are those of the regions, or their indexes where they have none. No two are alike.
func TestNamesOfRegions(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 0))
	own, indexes := 0, 0
	for range 3000 {
		d := right(r)
		l := d.layout()
		var byIndex, want []string
		for i, x := range d.regions {
			byIndex, want = append(byIndex, fmt.Sprint("#", i)), append(want, x.name)
		}
		if Check(l) != nil || l.Text[2] == sequenceKind {
			want = byIndex
		}
		got := Names(l)
		if !slices.Equal(got, want) {
			t.Fatalf("%q, the regions have %q", got, want)
		}
		if len(got) > 1 && got[0] != "#0" {
			own++
		} else if len(got) > 1 {
			indexes++
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != len(d.regions) {
			t.Fatalf("two of %q are alike", got)
		}
		l.Text = l.Text[:len(l.Text)-min(len(l.Text), 1+r.IntN(20))]
		if got := Names(l); Check(l) != nil && !slices.Equal(got, byIndex) {
			t.Fatalf("%q are the names of a text that is cut off", got)
		}
	}
	if own < 100 || indexes < 100 {
		t.Errorf("%d descriptions have names, %d have none", own, indexes)
	}
}

// A layout that no client has made has names all the same.
func TestNamesWithoutADescription(t *testing.T) {
	for _, text := range []string{"", "L", "100", "\x00\xff"} {
		l := &model.Layout{Slot: 2, Spans: []model.Span{{Bytes: 1}, {Offset: 1, Bytes: 1}}, Text: text}
		if got := Names(l); !slices.Equal(got, []string{"#0", "#1"}) {
			t.Errorf("%q", got)
		}
	}
	if got := Names(&model.Layout{}); len(got) != 0 {
		t.Errorf("%q", got)
	}
	one := Bytes(9)
	if got := Names(&one); !slices.Equal(got, []string{"#0"}) {
		t.Errorf("%q", got)
	}
}

// A name that is too long for those who refer to it makes all be named by their index.
func TestLongNames(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 0))
	for {
		d := right(r)
		if l := d.layout(); len(d.regions) < 2 || Check(l) != nil || l.Text[2] != mappingKind {
			continue
		}
		for _, n := range []int{65535, 65536} {
			d.regions[1].name = strings.Repeat("n", n)
			l := d.layout()
			if err := Check(l); err != nil {
				t.Fatal(err)
			}
			if got := Names(l); (got[1] == d.regions[1].name) != (n == 65535) || (got[0] == "#0") != (n == 65536) {
				t.Errorf("a name of %d bytes: %.20q and %.20q", n, got[0], got[1])
			}
		}
		return
	}
}
