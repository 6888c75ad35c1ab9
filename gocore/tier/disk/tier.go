// Package disk is the disk tier: its room, what is done when the disk does not answer, and, in a store that outlives the process, the way of each version
// into the catalog. It decides nothing about which checkpoint goes to the disk; package engine does.
package disk

import (
	"errors"
	"io"
	"time"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/model"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/disk/segment"
)

// Grain is the unit of space on disk. O_DIRECT requires this alignment on every device in use.
const Grain = 4096

// Cache is what the disk tier sees of the store's cache.
type Cache interface {
	tier.Shared
	Engine() *engine.Engine

	// Landed is called when a version is durable. It may drop checkpoints.
	Landed(r *engine.Record)
	// Rule returns the present rule of retention of a history.
	Rule(history string) *model.Retention
	// Refuse ends a capture whose bytes the disk does not take.
	Refuse(c *engine.Capture, why error)
	// RefuseAll ends the captures whose bytes would go straight to the disk.
	RefuseAll(why error)
}

// Options configure the tier.
type Options struct {
	FS       vfs.FS
	Path     string
	Capacity int64 // bytes for checkpoints, a multiple of Grain
	Direct   bool  // O_DIRECT where the file system allows it
	Durable  bool  // the checkpoints outlive the process; otherwise the files have no names, and vanish with it
	ReadOnly bool  // of a durable tier

	SegmentBytes int64
	CatalogSlack int64                // durable.Options.Slack
	LazyRows     bool                 // a stored checkpoint gets a record only when an operation needs it
	StallAfter   time.Duration        // the watchdog warns when the disk has not answered for so long
	GiveUpAfter  func() time.Duration // callers stop waiting for the disk after so long; called with the lock held
	RetryAfter   time.Duration        // least pause between two attempts of a change that failed; 0: firstPause

	Verified bool         // bytes that are read are compared with their checksums
	Top      int          // fastest tier that a stored checkpoint may be in
	Now      func() int64 // the engine's clock, ns
	Layouts  *checkpoint.Layouts
	Cache    Cache
}

// Tier is the disk tier of one store. The store's lock guards it, except where a method says otherwise.
type Tier struct {
	Space   *segment.Space
	o       Options
	cache   Cache
	index   int // the engine's number of the tier
	room    room
	watch   watchdog
	objects Objects
	lineages
	unloaded
	versions *versions // nil: the tier's files vanish when the store closes
}

// Open opens the files of the tier, which gets a number among the engine's tiers.
func Open(index int, o Options) (*Tier, error) {
	d := &Tier{o: o, cache: o.Cache, index: index}
	d.lineages, d.unloaded = lineages{tier: d}, unloaded{tier: d, count: map[string]int{}}
	d.room = room{tier: d, segments: map[int64]*segmentUse{}}
	d.watch = newWatchdog(d)
	if o.Durable {
		err := d.openDurable()
		d.openObjects()
		return d, err
	}
	space, err := segment.Open(segment.Options{FS: o.FS, Dir: o.Path, Capacity: o.Capacity, Direct: o.Direct})
	if err != nil {
		return nil, d.Error(err)
	}
	d.Space, d.room.budget = space, space.Capacity()
	d.openObjects()
	return d, nil
}

// Durable tells whether the checkpoints outlive the process.
func (d *Tier) Durable() bool { return d.versions != nil }

// Start begins to watch the disk.
func (d *Tier) Start() { d.watch.start() }

// Stop ends the watch, when the store closes.
func (d *Tier) Stop() { close(d.watch.stop) }

// Close closes the files after the commits in flight have landed. undone is the error about changes that did not become durable. The lock is not held.
func (d *Tier) Close() (err, undone error) {
	if d.versions == nil {
		return d.Space.Close(), nil
	}
	return d.versions.close()
}

// Uses tells whether a transfer reads or writes the tier.
func (d *Tier) Uses(x *engine.Transfer) bool { return max(x.From, x.To) == d.index }

// Began records that a transfer begins to use the disk; Ended that the disk has answered. A transfer that is committed is ended by its commit.
func (d *Tier) Began(x *engine.Transfer) { d.watch.since[x] = d.o.Now() }

// Ended is the counterpart of Began. err is the transfer's error.
func (d *Tier) Ended(x *engine.Transfer, err error) {
	delete(d.watch.since, x)
	if err != nil && !errors.Is(err, engine.ErrStopped) && d.versions != nil && len(d.room.segments) > 0 {
		d.versions.dir.Nudge()
	}
}

// SetBudget changes how many bytes of checkpoints the tier may hold. Settled tells when the files have followed.
func (d *Tier) SetBudget(bytes int64) { d.room.setBudget(bytes / Grain * Grain) }

// Settled tells whether no file is being made smaller for a budget.
func (d *Tier) Settled() bool { return d.room.jobs == 0 }

// Has tells whether the tier has all bytes of a checkpoint; those of a durable tier are in the catalog then.
func (d *Tier) Has(r *engine.Record) bool { return d.engine().Complete(r, d.index) }

// InUse is how many bytes the tier has for checkpoints now.
func (d *Tier) InUse() int64 { return d.engine().InUse(d.index) }

// Figures describe the state of the tier.
type Figures struct {
	Direct  bool
	Stalled int64 // ns for which the disk has not answered; 0: it answers
	Commits int64 // groups of changes that shared their syncs
	Pending Pending
}

// Pending counts what the disk and the catalog have not answered yet.
type Pending struct {
	Requests   int // transfers that use the disk, those of Commits among them
	Commits    int // versions on their way into the catalog
	Queued     int // versions that wait for an earlier one of their key
	Releases   int // changes that are to release room
	Retries    int // changes that are tried again
	Failed     int // changes that failed, several of which may be merged into one of Retries
	Tombstones int // keys and histories of which the catalog may still list dropped versions
}

// Changes is the number of changes of the catalog that have not landed.
func (p *Pending) Changes() int { return p.Commits + p.Queued + p.Releases + p.Failed }

// Figures returns the present state.
func (d *Tier) Figures() Figures {
	f := Figures{Direct: d.Space.Direct(), Stalled: d.watch.stalledFor(), Pending: Pending{Requests: len(d.watch.since), Releases: len(d.watch.drops)}}
	if v := d.versions; v != nil {
		f.Commits = v.commits
		for _, all := range v.inFlight {
			f.Pending.Commits += len(all)
		}
		for _, all := range v.queued {
			f.Pending.Queued += len(all)
		}
		for _, c := range v.retries.changes {
			f.Pending.Failed += changesOf(c)
		}
		f.Pending.Retries = len(v.retries.changes)
		f.Pending.Tombstones = len(v.tombstones.keys) + len(v.tombstones.histories)
	}
	return f
}

func (d *Tier) engine() *engine.Engine { return d.cache.Engine() }

// Error adds tier and errno to an error of the disk tier; nil stays nil.
func (d *Tier) Error(err error) error {
	return status.Explained(err, status.TierDisk, func(err error) *status.Error {
		if known := durable.Explain(err, d.o.Path); known != nil {
			return known
		}
		if errors.Is(err, segment.ErrNotDirectory) {
			return status.Wrap(status.Invalid, err, "path %q is not a folder", d.o.Path)
		}
		return status.Wrap(status.IO, err, "I/O in %q failed", d.o.Path)
	})
}

// ReadError is the error of a read from the disk tier.
func (d *Tier) ReadError(err error) error {
	switch {
	case errors.Is(err, segment.ErrUnwritten), errors.Is(err, io.ErrUnexpectedEOF):
		return status.Wrap(status.Corrupt, err, "its bytes are missing in %q: the data file is not there, or ends before them", d.o.Path).AtTier(status.TierDisk)
	case errors.Is(err, segment.ErrForeign):
		return status.Wrap(status.Corrupt, err, "its bytes are missing in %q: a data file that belongs elsewhere has the place of its own", d.o.Path).AtTier(status.TierDisk)
	case errors.Is(err, segment.ErrHead):
		return status.Wrap(status.Corrupt, err, "no checksum was compared, and nothing else says that its bytes in %q are this store's; `velocpy check` tells more", d.o.Path).AtTier(status.TierDisk)
	}
	return d.Error(err)
}
