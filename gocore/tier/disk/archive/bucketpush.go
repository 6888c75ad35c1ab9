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

// bucketPush is the part of a push into a bucket: the archive there, as this push has read it and changed it.
type bucketPush struct {
	push      *Push
	at        *bucket.Bucket
	image     *bucket.Image
	view      *durable.View
	writer    *catalog.Writer
	conflicts int
	elsewhere bucket.Costs // of the packs that other processes have uploaded
}

func (b *bucketPush) close() error {
	if b.view == nil {
		return nil
	}
	return b.view.Close()
}

// NewBucketPush is NewPush for an archive in a bucket. Options.Files and Leaders mean nothing there.
func NewBucketPush(from []Source, to *bucket.Bucket, o Options) (*Push, error) {
	return newPush(from, to.Place(), o, func(p *Push) error {
		p.bucket = &bucketPush{push: p, at: to}
		image, err := to.Read()
		if errors.Is(err, bucket.ErrNone) {
			image, err = makeIn(to)
		}
		if err != nil {
			return err
		}
		return p.bucket.enter(image)
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
func (b *bucketPush) enter(image *bucket.Image) error {
	view, err := ViewBucket(image)
	if err != nil {
		return err
	}
	err = b.close()
	b.image, b.view, b.writer = image, view, catalog.NewWriter(view.State())
	b.push.there = view
	return errors.Join(err, view.Fit(), b.push.know())
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

// upload brings a batch: what it lacks becomes packs, the last of which has the lists of the keys, and a commit names them.
func (b *bucketPush) upload(batch []*task) error {
	if len(batch) == 0 {
		return nil
	}
	p, start := b.push, b.image.Offset()
	parts := b.lacking(batch)
	if err := prove(p.o.writers(), slices.Concat(parts...)); err != nil {
		return err
	}
	contents := b.pack(parts, start)
	if len(contents) == 0 {
		contents = []*content{newContent()}
	}
	p.refer(batch)
	lists, _, numbers := listsOf(batch)
	last := contents[len(contents)-1]
	layLists(lists, start+int64(len(contents)-1)*bucket.SegmentBytes+last.bytes)
	last.numbers = numbers
	packs, err := b.plan(contents)
	if err != nil {
		return err
	}
	fillings := make([]bucket.Filling, len(contents))
	for k, c := range contents {
		fillings[k] = c.filling(packs[k])
	}
	if err := b.at.Upload(p.o.writers(), fillings...); err != nil {
		return b.uploadFailed(batch, err)
	}
	return b.settle(batch, lists, packs)
}

// plan plans the packs of contents.
func (b *bucketPush) plan(contents []*content) ([]*bucket.Pack, error) {
	drafts := make([]bucket.Draft, len(contents))
	for k, c := range contents {
		if err := requireFits(c.bytesAndLists()); err != nil {
			return nil, err
		}
		drafts[k] = c.draft()
	}
	return b.image.Plan(drafts...)
}

// requireFits refuses a pack that is too long.
func requireFits(bytes int64) error {
	if bytes <= bucket.SegmentBytes {
		return nil
	}
	return fmt.Errorf("a pack would have %s, and has at most %s: %w", quantity.Sized(bytes), quantity.Sized(bucket.SegmentBytes), ErrFull)
}

// uploadFailed begins a batch again whose pack another process has collected. Other errors it returns.
func (b *bucketPush) uploadFailed(batch []*task, err error) error {
	if errors.Is(err, bucket.ErrConflict) {
		return b.repeat(batch, err)
	}
	return err
}

// settle commits the keys of a batch whose parts are as the ranks' stores had them. Their bytes are in the packs.
func (b *bucketPush) settle(batch []*task, lists []*durable.Change, packs []*bucket.Pack) error {
	of := map[*task]*durable.Change{}
	for i, t := range batch {
		of[t] = lists[i]
	}
	sound, err := b.push.confirmed(batch)
	if err != nil || len(sound) == 0 {
		return err
	}
	for i := range sound {
		lists[i] = of[sound[i]]
	}
	return b.name(sound, lists[:len(sound)], packs)
}

// mostConflicts is how often a push begins a batch again because another one has changed the archive.
const mostConflicts = 5

// name commits keys, whose bytes are in packs.
func (b *bucketPush) name(batch []*task, lists []*durable.Change, packs []*bucket.Pack) error {
	p, before := b.push, b.push.done
	record := b.writer.Record()
	if err := b.write(record, p.changes(batch, lists)); err != nil {
		b.writer.Abandoned(record)
		return err
	}
	left := b.leftovers()
	next, err := b.commit(record, packs)
	if err != nil {
		b.writer.Abandoned(record)
		p.done = before
		if !errors.Is(err, bucket.ErrConflict) {
			return err
		}
		return b.repeat(batch, err)
	}
	if err := b.writer.Acknowledged(record); err != nil {
		return err
	}
	b.image, b.conflicts = next, 0
	b.sweep(left)
	for range packs {
		p.wrote[len(p.wrote)] = true
	}
	p.noteKeys(batch)
	return nil
}

// write writes changes to a record of the catalog.
func (b *bucketPush) write(record *catalog.Record, changes []*durable.Change) (err error) {
	for _, x := range changes {
		if x.Put != nil {
			b.view.Lay(x.Put, x.Off)
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
func (b *bucketPush) commit(record *catalog.Record, packs []*bucket.Pack) (*bucket.Image, error) {
	image := b.image
	if state := b.view.State(); image.Grown(state.LiveBytes()) {
		whole, err := image.Whole(state.Snapshot, nil)
		if err != nil {
			return nil, err
		}
		image = whole
	}
	return image.Commit(&bucket.Change{Record: record.Bytes(), Packs: packs})
}

// repeat begins a batch again, behind what another push has committed. Its packs are uploaded anew: the other one may have collected the first ones.
func (b *bucketPush) repeat(batch []*task, why error) error {
	if b.conflicts++; b.conflicts > mostConflicts {
		return why
	}
	image, err := b.image.Again()
	if err != nil {
		return err
	}
	b.push.queue = slices.Concat(batch, b.push.queue)
	return b.enter(image)
}

// Every so many commits, a push collects the orphans of dead pushes, once they are sweepAge seconds old.
const (
	sweepEvery = 16
	sweepAge   = 3600
)

// leftovers lists possible orphans before a commit that allows to collect them; nil if that is not worth the requests.
func (b *bucketPush) leftovers() *bucket.Leftovers {
	if (b.image.Number()+1)%sweepEvery != 0 {
		return nil
	}
	left, err := b.image.Leftovers(false)
	if err != nil {
		logring.Add(logring.Warning, "orphans in "+b.at.Place()+" could not be listed: "+err.Error())
		return nil
	}
	return left
}

func (b *bucketPush) sweep(left *bucket.Leftovers) {
	if left == nil {
		return
	}
	_, err := left.Collect(b.image, sweepAge, false)
	if err == nil {
		_, _, err = b.image.Replace(sweepAge, false)
	}
	if err != nil {
		logring.Add(logring.Warning, "orphans in "+b.at.Place()+" could not be removed: "+err.Error())
	}
}
