package inspect

import (
	"errors"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/status"
	"velocpy/gocore/tier/disk/archive"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/durable"
)

// errNoRepair: an archive in a bucket is not repaired.
var errNoRepair = errors.New("an archive in a bucket cannot be repaired there; `velocpy pull` makes stores of what can be read")

// atOnce is how much of a pack a copy asks for at once, in several requests. It asks for as much again while it writes these bytes.
const atOnce = 32 << 20

// useConnections makes the sockets of a program velocpy-s3 the way to buckets that are opened from now on.
func (d *Desk) useConnections(q *Request) ([]byte, error) {
	connections, err := bucket.NewConnections(q.Descriptors)
	if err != nil {
		return nil, err
	}
	d.Buckets.Use(connections)
	return answer(struct{}{}, nil)
}

func (d *Desk) at(place string) (*bucket.Bucket, error) {
	if d.Buckets == nil {
		return nil, bucket.ErrNoProgram
	}
	return d.Buckets.At(place)
}

// source says where a store is read from: a directory, or a bucket.
func (d *Desk) source(q *Request) (durable.Options, error) {
	if !bucket.IsPlace(string(q.Path)) {
		return d.options(q), nil
	}
	if d.Buckets == nil {
		return durable.Options{}, bucket.ErrNoProgram
	}
	o, err := FromBucket(d.Buckets, string(q.Path))
	o.Describes, o.Annotates = d.Describes, d.Annotates
	return o, err
}

// FromBucket reads which archive is in a bucket, and returns how it is opened for reading, as it is now.
func FromBucket(reach *bucket.Reach, place string) (o durable.Options, err error) {
	at, err := reach.At(place)
	if err != nil {
		return o, err
	}
	image, err := at.Read()
	if err != nil {
		return o, err
	}
	return durable.Options{FS: image.FS(), Dir: place, AtOnce: atOnce}, nil
}

// collectBucket removes what an archive in a bucket does not need.
func (d *Desk) collectBucket(q *Request) ([]byte, error) {
	at, err := d.at(string(q.Path))
	if err != nil {
		return nil, err
	}
	got, err := archive.CollectBucket(at, q.Age, q.Dry)
	if err != nil {
		return nil, err
	}
	removed := got.Packs + got.Catalogs + got.Uploads + got.Commits
	return answer(map[string]any{"dropped": 0, "dropped_bytes": 0, "removed_files": removed, "file_bytes": got.Bytes, "catalog_bytes": 0}, nil)
}

// ExplainBucket returns the status of an error of an archive in a bucket; nil: it is none.
func ExplainBucket(err error, place string) *status.Error {
	if !bucket.IsPlace(place) {
		return nil
	}
	why := func(said error) error { return status.Without(err, place, said.Error()) }
	switch {
	case errors.Is(err, errNoRepair), errors.Is(err, bucket.ErrPlace):
		return status.Wrap(status.Invalid, err, "nothing was changed")
	case errors.Is(err, bucket.ErrForeign):
		return status.Wrap(status.Invalid, why(bucket.ErrForeign), "in %q are objects of others, and no archive; nothing was changed there. Give the archive a prefix of its own", place)
	case errors.Is(err, bucket.ErrNone):
		return status.Wrap(status.NoStore, why(bucket.ErrNone), "there is no archive in %q", place)
	case errors.Is(err, bucket.ErrVersion):
		return status.Wrap(status.Later, why(bucket.ErrVersion), "the archive in %q was written by a later version of velocpy", place)
	case errors.Is(err, bucket.ErrDamaged):
		return status.Wrap(status.Damaged, why(bucket.ErrDamaged), "the archive in %q is damaged", place)
	case errors.Is(err, bucket.ErrConflict):
		return status.Wrap(status.Locked, why(bucket.ErrConflict), "another process keeps changing the archive in %q; what this one has committed is there", place)
	case errors.Is(err, bucket.ErrFull):
		return status.Wrap(status.Invalid, err, "the archive is full")
	case errors.Is(err, bucket.ErrNoProgram):
		return status.Wrap(status.Unavailable, err, "the archive in %q cannot be reached", place).AtTier(status.TierArchive)
	case errors.Is(err, unix.EROFS):
		return nil // as of a directory
	case durable.Explain(err, place) != nil:
		return nil
	}
	if status.Errno(err) == 0 {
		return nil
	}
	return status.Wrap(status.IO, err, "the archive in %q", place).AtTier(status.TierArchive)
}
