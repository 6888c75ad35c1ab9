package inspect

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"velocpy/gocore/base/pytext"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/archive"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/durable"
)

// ErrNone is the error when a history or checkpoint does not exist.
var ErrNone = errors.New("there is none")

// Desk answers requests and keeps the sessions that they open. Any goroutine may call its methods.
type Desk struct {
	FS vfs.FS
	// Buckets reaches archives in buckets; nil: none can be reached.
	Buckets *bucket.Reach
	// Describes and Annotates are those of durable.Options.
	Describes func(*model.Layout) error
	Annotates func(l *model.Layout, meta string) error

	sessions   numbered[*Session]
	backups    numbered[*durable.Backup]
	pushes     numbered[*archive.Push]
	plans      numbered[[]byte] // by the numbers of pushes: the last plan
	arrivals   numbered[arrived]
	recordings numbered[recorded]
	shares     numbered[*archive.Share]
}

// Ask answers a request in at most room bytes. If room is below Room, it does nothing and returns nil. Some requests read data, or fill it. Its errors are
// *status.Error.
func (d *Desk) Ask(text, data []byte, room int) ([]byte, error) {
	q, err := ParseRequest(text)
	if err == nil && room < Room {
		return nil, nil
	}
	var reply []byte
	if err == nil {
		reply, err = d.do(&q, data, room)
	}
	if err != nil {
		return nil, statusOf(err, d.about(&q, err))
	}
	return reply, nil
}

func (d *Desk) do(q *Request, data []byte, room int) ([]byte, error) {
	switch q.Op {
	case "open":
		return d.open(q)
	case "connections":
		return d.useConnections(q)
	case "collect":
		if bucket.IsPlace(string(q.Path)) {
			return d.collectBucket(q)
		}
		got, err := durable.Collect(d.options(q), q.Dry)
		if err != nil {
			return nil, err
		}
		return answer(map[string]any{
			"dropped": got.Dropped, "dropped_bytes": got.DroppedBytes, "removed_files": len(got.Removed), "file_bytes": got.Files, "catalog_bytes": got.Catalog,
		}, nil)
	case "repair":
		if bucket.IsPlace(string(q.Path)) {
			return nil, fmt.Errorf("%s: %w", q.Path, errNoRepair)
		}
		all, err := victims(q.Victims)
		if err != nil {
			return nil, err
		}
		done, err := durable.Repair(d.options(q), durable.Mending{Drop: all, Rebuild: q.Rebuild, Unproven: q.Unproven})
		if err != nil {
			return nil, err
		}
		return answer(map[string]any{
			"identity": done.Identity, "heads": done.Heads, "indexes": done.Indexes, "catalog": done.Catalog, "dropped": done.Dropped, "spared": done.Spared,
			"found": done.Rebuilt.Found, "changed": done.Rebuilt.Changed, "unproven": done.Rebuilt.Unproven,
		}, nil)
	case "backup":
		from, err := d.source(q)
		if err != nil {
			return nil, err
		}
		b, err := durable.NewBackup(from, durable.Options{FS: d.FS, Dir: string(q.To), Direct: true})
		if err != nil {
			return nil, err
		}
		return d.began(q, b)
	case "pull":
		return d.pull(q)
	case "push":
		return d.push(q)
	case "push_step":
		return d.stepPush(q)
	case "push_close":
		d.plans.take(q.View)
		d.arrivals.take(q.View)
		return closed(&d.pushes, q.View)
	case "push_metadata":
		return d.takeMetadata(q, data)
	case "push_plan":
		return d.plan(q, room)
	case "push_land":
		return d.land(q, data)
	case "push_done":
		return d.pushed(q)
	case "push_omitted":
		return d.omitted(q, room)
	case "push_hold":
		return d.hold(q, data)
	case "metadata":
		return d.metadata(q)
	case "metadata_read":
		return d.readMetadata(q, data)
	case "metadata_close":
		return closed(&d.recordings, q.View)
	case "share":
		return d.share(q)
	case "share_begin", "share_read", "share_write", "share_copy", "share_upload", "share_end":
		return d.doShare(q, data)
	case "share_close":
		return closed(&d.shares, q.View)
	case "backup_step":
		return d.stepBackup(q)
	case "backup_close":
		return closed(&d.backups, q.View)
	case "close":
		return closed(&d.sessions, q.View)
	}
	s, ok := d.sessions.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	return s.Ask(q, room)
}

// began keeps a backup that has begun.
func (d *Desk) began(q *Request, b *durable.Backup) ([]byte, error) {
	if err := d.backups.put(q.View, b); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return answer(struct{}{}, nil)
}

func (d *Desk) stepBackup(q *Request) ([]byte, error) {
	b, ok := d.backups.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	done, err := b.Step(q.enough())
	if err != nil {
		return nil, err
	}
	got := b.Done()
	return answer(map[string]any{
		"done": done, "checkpoints": got.Checkpoints, "bytes": got.Bytes, "rounds": got.Rounds, "older": got.Older, "damaged": got.Damaged,
	}, nil)
}

// closed closes the view or backup with a number, if there is one.
func closed[T io.Closer](all *numbered[T], number uint64) ([]byte, error) {
	if v, ok := all.take(number); ok {
		if err := v.Close(); err != nil {
			return nil, err
		}
	}
	return answer(struct{}{}, nil)
}

func (d *Desk) stale() error {
	return status.New(status.Stale, "this view of a store does not exist, or not any more")
}

func (d *Desk) options(q *Request) durable.Options {
	return durable.Options{FS: d.FS, Dir: string(q.Path), Direct: true, Describes: d.Describes, Annotates: d.Annotates}
}

func (d *Desk) open(q *Request) ([]byte, error) {
	if q.Path == "" {
		return nil, fmt.Errorf("%w: no path", ErrRequest)
	}
	began := time.Now()
	from, err := d.source(q)
	if err != nil {
		return nil, err
	}
	s, err := Open(from)
	if err != nil {
		return nil, err
	}
	if err := d.sessions.put(q.View, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	a := s.About()
	facts := map[string]any{
		"store": hex.EncodeToString(a.Store[:]), "format": a.Format, "segment_bytes": a.SegmentBytes, "damage": nil,
		"seconds": time.Since(began).Seconds(),
	}
	if a.Damage != nil {
		facts["damage"] = pytext.Cut(a.Damage.Error(), mostWhy)
	}
	return answer(facts, nil)
}

// statusOf converts an error to one with a status.
func statusOf(err error, path string) error {
	var known *status.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, durable.ErrNotEmpty):
		return status.Wrap(status.Invalid, err, "a backup needs a directory of its own")
	case errors.Is(err, ErrRequest), errors.Is(err, durable.ErrScope):
		return status.Wrap(status.Invalid, err, "the question is not understood")
	case errors.Is(err, ErrNone):
		return status.New(status.NotFound, "there is no %v", status.Without(err, ErrNone.Error()))
	}
	if known := explainArchive(err); known != nil {
		return known
	}
	if known := ExplainBucket(err, path); known != nil {
		return known
	}
	if known := durable.Explain(err, path); known != nil {
		return known
	}
	return status.Wrap(status.IO, err, "the store in %q", path).AtTier(status.TierDisk)
}
