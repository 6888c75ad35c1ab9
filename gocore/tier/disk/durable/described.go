package durable

import "velocpy/gocore/tier/disk/catalog"

// Described validates the text of a layout; nil: the text describes the layout, or Options.Describes is nil.
func (f *files) Described(l *catalog.Layout) error {
	if f.o.Describes == nil {
		return nil
	}
	return f.o.Describes(&l.Layout)
}

// descriptions validates the descriptions in rows, each layout once.
type descriptions struct {
	o    *Options
	seen map[*catalog.Layout]error
}

func describing(o *Options) descriptions {
	return descriptions{o: o, seen: map[*catalog.Layout]error{}}
}

// wrong returns the error in a row's description or meta; nil: none. It reads no bytes of the checkpoint.
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
