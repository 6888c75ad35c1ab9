package durable

import (
	"errors"
	"slices"
	"strings"

	"velocpy/gocore/plan"

	"golang.org/x/sys/unix"
)

// listed is a file of the catalog as a listing shows it. A writer makes files and appends to them, so that every batch changes a listing.
type listed struct {
	name string
	size int64
}

// listing lists the files of the catalog. One that a writer removes meanwhile has the size -1.
func (o *Options) listing() ([]listed, error) {
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return nil, err
	}
	var all []listed
	for _, name := range names {
		if !strings.HasPrefix(name, "catalog-") {
			continue
		}
		info, err := o.FS.Stat(o.path(name))
		if errors.Is(err, unix.ENOENT) {
			info.Size, err = -1, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, listed{name, info.Size})
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// Current tells whether the catalog, as it is now, still has that version of a checkpoint which the View has. A writer writes to the place of a version only
// after the batch by which it goes: bytes that were read before Current has said yes are those of the version. The catalog is read again only when it has
// changed since the last call. Calls take turns.
func (v *View) Current(history string, key plan.Key, serial uint64) (bool, error) {
	v.looking.Lock()
	defer v.looking.Unlock()
	files, err := v.o.listing()
	if err != nil {
		return false, err
	}
	if !slices.Equal(files, v.seen) {
		latest, err := read(v.o)
		if err != nil {
			return false, err
		}
		v.latest, v.seen = latest, files
	}
	return v.latest == nil || v.latest.counts(history, key, serial), nil
}
