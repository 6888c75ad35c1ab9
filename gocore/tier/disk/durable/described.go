package durable

import "velocpy/gocore/tier/disk/catalog"

// Described tells whether the text of a layout describes it; nil: it does, or nothing is known of texts.
func (c *contents) Described(l *catalog.Layout) error {
	if c.o.Describes == nil {
		return nil
	}
	return c.o.Describes(&l.Layout)
}

// descriptions looks at what rows say of their checkpoints, at each layout once.
type descriptions struct {
	o    *Options
	seen map[*catalog.Layout]error
}

func describing(o *Options) descriptions {
	return descriptions{o: o, seen: map[*catalog.Layout]error{}}
}

// wrong is what is wrong with a row beside the bytes of its checkpoint; nil: nothing.
func (d *descriptions) wrong(row *catalog.Row) error {
	if d.o.Describes == nil {
		return nil
	}
	why, known := d.seen[row.Layout]
	if !known {
		why = d.o.Describes(&row.Layout.Layout)
		d.seen[row.Layout] = why
	}
	if why == nil && d.o.Annotates != nil {
		why = d.o.Annotates(&row.Layout.Layout, row.Meta)
	}
	return why
}
