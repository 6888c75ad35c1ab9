package archive

import (
	"errors"
	"fmt"
	"slices"

	"velocpy/gocore/base/logring"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
)

// cloud is an archive in a bucket, as this push has read it and changed it.
type cloud struct {
	push      *Push
	bucket    *bucket.Bucket
	image     *bucket.Image
	view      *durable.View
	writer    *catalog.Writer
	conflicts int
}

func (c *cloud) close() error {
	if c.view == nil {
		return nil
	}
	return c.view.Close()
}

// NewBucketPush is NewPush for an archive in a bucket. Options.Files and Leaders mean nothing there.
func NewBucketPush(from []Source, to *bucket.Bucket, o Options) (*Push, error) {
	return newPush(from, to.Place(), o, func(p *Push) error {
		p.cloud = &cloud{push: p, bucket: to}
		image, err := to.Read()
		if errors.Is(err, bucket.ErrNone) {
			image, err = makeIn(to)
		}
		if err != nil {
			return err
		}
		return p.cloud.enter(image)
	})
}

// makeIn makes an archive, unless another process has made it since.
func makeIn(to *bucket.Bucket) (*bucket.Image, error) {
	identity, err := durable.PlainIdentity(bucket.SegmentBytes)
	if err != nil {
		return nil, err
	}
	if err := to.Make(identity); err != nil {
		return nil, err
	}
	return to.Read()
}

// enter takes what the archive has in an image.
func (c *cloud) enter(image *bucket.Image) error {
	view, err := ViewBucket(image)
	if err != nil {
		return err
	}
	err = c.close()
	c.image, c.view, c.writer = image, view, catalog.NewWriter(view.State())
	c.push.there = view
	return errors.Join(err, view.Fit(), c.push.know())
}

// ViewBucket opens an archive in a bucket for reading.
func ViewBucket(image *bucket.Image) (*durable.View, error) {
	view, err := durable.Read(durable.Options{FS: image.FS(), Dir: image.Place()})
	if err != nil {
		return nil, err
	}
	if view.SegmentBytes() != bucket.SegmentBytes {
		return nil, errors.Join(fmt.Errorf("%s: %w", image.Place(), ErrNoArchive), view.Close())
	}
	return view, nil
}

// upload brings a batch: what it lacks becomes one pack, and a commit names it.
func (c *cloud) upload(batch []*task) error {
	if len(batch) == 0 {
		return nil
	}
	if err := c.prove(batch); err != nil {
		return err
	}
	start, err := c.image.Offset()
	if err != nil {
		return err
	}
	lists, _, numbers := listsOf(batch)
	of := map[*task]*durable.Change{}
	for i, t := range batch {
		of[t] = lists[i]
	}
	content := c.pack(batch, start)
	layLists(lists, start+content.bytes)
	content.numbers = numbers
	total := content.bytes + int64(len(numbers))
	if total > bucket.SegmentBytes {
		return fmt.Errorf("a key of all ranks has %s, and a pack at most %s: %w", quantity.Sized(total), quantity.Sized(bucket.SegmentBytes), ErrFull)
	}
	uploaded, err := c.image.Upload(total, c.push.o.writers(), content.fill)
	if errors.Is(err, bucket.ErrConflict) {
		return c.repeat(batch, err)
	}
	if err != nil {
		return err
	}
	sound, err := c.push.confirmed(batch)
	if err != nil || len(sound) == 0 {
		return err
	}
	for i := range sound {
		lists[i] = of[sound[i]]
	}
	return c.name(sound, lists[:len(sound)], uploaded)
}

// mostConflicts is how often a push begins a batch again because another one has changed the archive.
const mostConflicts = 5

// name commits keys, whose bytes are in a pack.
func (c *cloud) name(batch []*task, lists []*durable.Change, uploaded *bucket.Pack) error {
	p, before := c.push, c.push.done
	record := c.writer.Record()
	if err := c.write(record, p.changes(batch, lists)); err != nil {
		c.writer.Abandoned(record)
		return err
	}
	left := c.leftovers()
	next, err := c.commit(record, uploaded)
	if err != nil {
		c.writer.Abandoned(record)
		p.done = before
		if !errors.Is(err, bucket.ErrConflict) {
			return err
		}
		return c.repeat(batch, err)
	}
	if err := c.writer.Acknowledged(record); err != nil {
		return err
	}
	c.image, c.conflicts = next, 0
	c.sweep(left)
	p.wrote[len(p.wrote)] = true
	p.noteKeys(batch)
	return nil
}

// write writes changes to a record of the catalog.
func (c *cloud) write(record *catalog.Record, changes []*durable.Change) (err error) {
	for _, x := range changes {
		if x.Put != nil {
			c.view.Lay(x.Put, x.Off)
			err = record.Put(x.History, x.Put)
		} else {
			err = record.Drop(x.History, x.Key, x.Serial)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commit makes a commit of a record, and a whole catalog before it when the commits have become long.
func (c *cloud) commit(record *catalog.Record, uploaded *bucket.Pack) (*bucket.Image, error) {
	image := c.image
	if state := c.view.State(); image.Grown(state.LiveBytes()) {
		whole, err := image.Whole(state.Snapshot, nil)
		if err != nil {
			return nil, err
		}
		image = whole
	}
	return image.Commit(&bucket.Change{Record: record.Bytes(), Pack: uploaded})
}

// repeat begins a batch again, behind what another push has committed. Its packs are uploaded anew: the other one may have collected the first ones.
func (c *cloud) repeat(batch []*task, why error) error {
	if c.conflicts++; c.conflicts > mostConflicts {
		return why
	}
	image, err := c.image.Again()
	if err != nil {
		return err
	}
	c.push.queue = slices.Concat(batch, c.push.queue)
	return c.enter(image)
}

// Every so many commits, a push collects the orphans of dead pushes, once they are sweepAge seconds old.
const (
	sweepEvery = 16
	sweepAge   = 3600
)

// leftovers lists possible orphans before a commit that allows to collect them; nil if that is not worth the requests.
func (c *cloud) leftovers() *bucket.Leftovers {
	if (c.image.Number()+1)%sweepEvery != 0 {
		return nil
	}
	left, err := c.image.Leftovers(false)
	if err != nil {
		logring.Add(logring.Warning, "orphans in "+c.bucket.Place()+" could not be listed: "+err.Error())
		return nil
	}
	return left
}

func (c *cloud) sweep(left *bucket.Leftovers) {
	if left == nil {
		return
	}
	_, err := left.Collect(c.image, sweepAge, false)
	if err == nil {
		_, _, err = c.image.Replace(sweepAge, false)
	}
	if err != nil {
		logring.Add(logring.Warning, "orphans in "+c.bucket.Place()+" could not be removed: "+err.Error())
	}
}
