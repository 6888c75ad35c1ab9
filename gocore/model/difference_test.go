package model

import (
	"errors"
	"testing"
)

func TestDifferencesThatCannotBe(t *testing.T) {
	good := func() *Difference {
		return &Difference{Number: 9, Data: 32, Meta: 5, Sources: []Source{{Number: 0, Meta: 1}, {Number: 8, Data: 16, Meta: MostMeta}}}
	}
	if d := good(); d.Check() != nil || d.Bytes() != 37 || d.Sources[1].Bytes() != 16+MostMeta {
		t.Errorf("%v, %d bytes", d.Check(), d.Bytes())
	}
	for name, change := range map[string]func(d *Difference){
		"data of no whole containers":  func(d *Difference) { d.Data = 31 },
		"negative data":                func(d *Difference) { d.Data = -16 },
		"too much data":                func(d *Difference) { d.Sources[0].Data = MostData + 16 },
		"no metadata":                  func(d *Difference) { d.Meta = 0 },
		"too much metadata":            func(d *Difference) { d.Sources[1].Meta++ },
		"a source twice":               func(d *Difference) { d.Sources[0].Number = 8 },
		"sources that do not ascend":   func(d *Difference) { d.Sources[0], d.Sources[1] = d.Sources[1], d.Sources[0] },
		"a source that is not earlier": func(d *Difference) { d.Sources[1].Number = 9 },
		"more sources than a row may have": func(d *Difference) {
			d.Number, d.Sources = MostSources+1, make([]Source, MostSources+1)
			for i := range d.Sources {
				d.Sources[i] = Source{Number: uint32(i), Meta: 1}
			}
		},
	} {
		d := good()
		if change(d); !errors.Is(d.Check(), ErrDifference) {
			t.Errorf("%s: %v", name, d.Check())
		}
	}
}
