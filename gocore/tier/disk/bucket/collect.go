package bucket

import (
	"errors"
	"strings"

	"velocpy/gocore/base/wire"
)

// A process that dies while it pushes leaves orphans: packs, whole catalogs and uploads that no commit names. A collector removes them in three steps: it lists
// all objects, it makes a commit, and it removes the listed objects that this commit does not name. Another push may have uploaded such an object before the
// collector's commit, and not have committed it. That push fails with ErrConflict, since the number of its commit is taken, and uploads its packs anew. So the
// collector relies on no clock. It spares young objects for two reasons: the other push has less work, and readers of an older commit find its packs.

// Leftovers are objects and uploads that were there at some time.
type Leftovers struct {
	at      *Bucket
	objects []wire.Object // of packs and catalogs
	uploads []wire.Object
}

// pageKeys is how many keys one listing has.
const pageKeys = 1000

// Leftovers lists what may have been left: with all, everything, else what the last pushes have made.
func (i *Image) Leftovers(all bool) (*Leftovers, error) {
	l := &Leftovers{at: i.at}
	for _, beginning := range []string{packsAt, catalogsAt} {
		after := ""
		for more := true; more; {
			some, further, err := i.at.list(beginning, after, pageKeys)
			if err != nil {
				return nil, err
			}
			if l.objects = append(l.objects, some...); len(some) > 0 {
				after = some[len(some)-1].Key
			}
			more = all && further && len(some) > 0
		}
	}
	r, _, err := i.at.ask(wire.Request{Op: wire.Uploads, Prefix: i.at.prefix + packsAt}, nil, nil)
	l.uploads = i.at.below(r.Objects)
	return l, err
}

// Collected counts removed objects, aborted uploads and emptied commits, and their bytes.
type Collected struct {
	Packs, Catalogs, Uploads, Commits int
	Bytes                             int64
}

// Collect removes what an image does not name and is so many seconds old. The image's last commit was made after the listing. With dry it only counts.
func (l *Leftovers) Collect(now *Image, age float64, dry bool) (done Collected, err error) {
	named := map[string]bool{catalogsAt + now.base.String(): true}
	for k := range now.packs {
		named[now.packs[k].key()] = true
	}
	var keys []string
	for _, x := range l.objects {
		if named[x.Key] || x.Age < age {
			continue
		}
		if keys = append(keys, now.at.prefix+x.Key); strings.HasPrefix(x.Key, packsAt) {
			done.Packs++
		} else {
			done.Catalogs++
		}
		done.Bytes += x.Bytes
	}
	if !dry {
		err = now.at.remove(keys)
	}
	for _, x := range l.uploads {
		if x.Age < age || err != nil {
			continue
		}
		if done.Uploads++; !dry {
			_, _, err = now.at.ask(wire.Request{Op: wire.Abort, Key: now.at.prefix + x.Key, Upload: x.Upload}, nil, nil)
			if errors.Is(err, errAbsent) {
				err = nil // its push has ended meanwhile
			}
		}
	}
	return done, err
}

// deletesAtOnce bounds the keys of one request to the program.
const deletesAtOnce = 100

func (b *Bucket) remove(keys []string) error {
	for len(keys) > 0 {
		some := keys[:min(len(keys), deletesAtOnce)]
		if _, _, err := b.ask(wire.Request{Op: wire.Delete, Keys: some}, nil, nil); err != nil {
			return err
		}
		keys = keys[len(some):]
	}
	return nil
}

// Replace replaces the objects of commits before an image's by empty ones, from the newest on until one is empty already. Those that are not so many seconds old
// stay: a reader may have found one by its listing. With dry it only counts.
func (i *Image) Replace(age float64, dry bool) (replaced int, bytes int64, err error) {
	after := commitKey(i.number)
	for {
		some, more, err := i.at.list(commitsAt, after, pageKeys)
		if err != nil {
			return replaced, bytes, err
		}
		for _, x := range some {
			switch {
			case x.Bytes == 0:
				return replaced, bytes, nil
			case x.Age < age:
				continue
			}
			if !dry {
				if err := i.at.put(x.Key, nil, false); err != nil {
					return replaced, bytes, err
				}
			}
			replaced, bytes = replaced+1, bytes+x.Bytes
		}
		if !more || len(some) == 0 {
			return replaced, bytes, nil
		}
		after = some[len(some)-1].Key
	}
}
