package difference

import "fmt"

// check verifies all rules of the format that do not concern the layout, given the length of the first occurrences.
func (d *Difference) check(data uint64) error {
	switch {
	case !d.Method.Valid() || !d.Kind.Valid() || !ValidChunk(d.Chunk):
		return fmt.Errorf("%w: unknown method, function or chunk length", ErrFormat)
	case d.Checkpoint > MaxCheckpoint:
		return fmt.Errorf("%w: checkpoint %d", ErrLimit, d.Checkpoint)
	case d.HasBase && d.Base >= d.Checkpoint || !d.HasBase && d.Base != 0:
		return fmt.Errorf("%w: the base of checkpoint %d is %d", ErrFormat, d.Checkpoint, d.Base)
	case len(d.References) > MaxReferences:
		return fmt.Errorf("%w: %d references", ErrLimit, len(d.References))
	}
	for i, c := range d.References {
		if c >= d.Checkpoint || i > 0 && c <= d.References[i-1] {
			return fmt.Errorf("%w: the reference %d is later, or out of order", ErrFormat, c)
		}
	}
	chunks, err := d.checkRegions()
	if err != nil {
		return err
	}
	if err := d.checkMethod(chunks); err != nil {
		return err
	}
	return d.walk(data, func(piece) error { return nil })
}

// checkRegions returns the number of chunks of all regions.
func (d *Difference) checkRegions() (uint64, error) {
	var chunks, total uint64
	names := make(map[string]bool, len(d.Regions))
	for i := range d.Regions {
		r := &d.Regions[i]
		if r.Size > MaxBytes || len(r.Name) > MaxName {
			return 0, fmt.Errorf("%w: size or name of region %d", ErrLimit, i)
		}
		if names[r.Name] {
			return 0, fmt.Errorf("%w: two regions have the name %q", ErrFormat, r.Name)
		}
		names[r.Name] = true
		total += r.Size
		chunks += d.chunks(r)
		if total > MaxBytes || chunks > MaxChunks {
			return 0, fmt.Errorf("%w: the size of all regions", ErrLimit)
		}
	}
	return chunks, nil
}

// checkMethod verifies that the metadata is that of the method.
func (d *Difference) checkMethod(chunks uint64) error {
	entries := len(d.First) + len(d.Shifted)
	switch {
	case d.Method <= Basic && entries > 0:
		return fmt.Errorf("%w: %s has no entries", ErrFormat, d.Method)
	case d.Method == Full && d.HasBase:
		return fmt.Errorf("%w: %s has no base", ErrFormat, d.Method)
	case d.Method == Full && len(d.References) > 0:
		return fmt.Errorf("%w: %s has no references", ErrFormat, d.Method)
	case d.Method == Basic && uint64(len(d.Changed)) != (chunks+7)/8 || d.Method != Basic && len(d.Changed) > 0:
		return fmt.Errorf("%w: the length of the bitmap", ErrFormat)
	}
	if d.Method == Basic && chunks%8 != 0 && d.Changed[chunks/8]>>(chunks%8) != 0 {
		return fmt.Errorf("%w: a bit behind the last chunk", ErrFormat)
	}
	for _, e := range d.First {
		if e.Position >= MaxChunks || e.Extent > MaxRun {
			return fmt.Errorf("%w: an entry at position %d", ErrLimit, e.Position)
		}
	}
	for i := range d.Shifted {
		if s := &d.Shifted[i]; s.Position >= MaxChunks || s.Extent > MaxRun {
			return fmt.Errorf("%w: an entry at position %d", ErrLimit, s.Position)
		}
	}
	return nil
}
