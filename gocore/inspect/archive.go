package inspect

import (
	"encoding/json"
	"errors"
	"fmt"

	"velocpy/gocore/base/pytext"
	"velocpy/gocore/base/status"
	"velocpy/gocore/tier/disk/archive"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/durable"
)

// Rank is the store of a rank.
type Rank struct {
	Rank int   `json:"rank"`
	Path Bytes `json:"path"`
}

// push begins a push.
func (d *Desk) push(q *Request) ([]byte, error) {
	if q.To == "" || len(q.Ranks) == 0 {
		return nil, fmt.Errorf("%w: no archive, or no ranks", ErrRequest)
	}
	o := archive.Options{Files: q.Files, Writers: q.Writers, Leaders: q.Leaders, Stripe: q.Stripe, Partial: q.Partial, Paces: q.Paces}
	if q.Histories != nil {
		o.Histories = []string{}
	}
	for _, name := range q.Histories {
		o.Histories = append(o.Histories, string(name))
	}
	metadata, _ := d.arrivals.take(q.View)
	from, err := d.rankSources(q.Ranks, metadata)
	if err != nil {
		return nil, err
	}
	p, err := d.newPush(from, string(q.To), o)
	if err != nil {
		return nil, err
	}
	if err := d.pushes.put(q.View, p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return answer(struct{}{}, nil)
}

// newPush begins a push into a directory or a bucket.
func (d *Desk) newPush(from []archive.Source, to string, o archive.Options) (*archive.Push, error) {
	if !bucket.IsPlace(to) {
		return archive.NewPush(from, durable.Options{FS: d.FS, Dir: to, Direct: true}, o)
	}
	at, err := d.at(to)
	if err != nil {
		return nil, err
	}
	return archive.NewBucketPush(from, at, o)
}

// about returns the path of the store that an error concerns.
func (d *Desk) about(q *Request, err error) string {
	var of *archive.RankError
	if errors.As(err, &of) {
		return of.Dir
	}
	switch q.Op {
	case "push", "share":
		return string(q.To)
	case "share_begin", "share_read", "share_write", "share_copy", "share_upload", "share_end":
		if s, ok := d.shares.get(q.View); ok {
			return s.Dir()
		}
	case "push_step", "push_plan", "push_land":
		if p, ok := d.pushes.get(q.View); ok {
			return p.Dir()
		}
	}
	return string(q.Path)
}

// mostDamage bounds the damaged parts that are named.
const mostDamage = 100

func (d *Desk) stepPush(q *Request) ([]byte, error) {
	p, ok := d.pushes.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	done, err := p.Step(q.enough())
	if err != nil {
		return nil, err
	}
	return outcome(p, done)
}

// pushed tells what a push by plans has done so far.
func (d *Desk) pushed(q *Request) ([]byte, error) {
	p, ok := d.pushes.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	return outcome(p, p.Done().Left == 0)
}

func outcome(p *archive.Push, done bool) ([]byte, error) {
	got := p.Done()
	damaged := []string{}
	for _, x := range got.Damaged[:min(len(got.Damaged), mostDamage)] {
		damaged = append(damaged, pytext.Cut(fmt.Sprintf("rank %d, checkpoint %s of history %q", x.Rank, x.Key, x.History), mostWhy))
	}
	return answer(map[string]any{
		"done": done, "keys": got.Keys, "parts": got.Parts, "bytes": got.Bytes, "known": got.Known, "incomplete": got.Incomplete, "changed": got.Changed,
		"damaged": len(got.Damaged), "damaged_parts": damaged, "files": got.Files, "left": got.Left, "paces": p.Paces(),
		"requests": got.Requests, "sent": got.Sent, "received": got.Received,
	}, nil)
}

// omitted lists the keys that a push has left out, one in each line: names and keys as requests have them.
func (d *Desk) omitted(q *Request, room int) ([]byte, error) {
	p, ok := d.pushes.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	all, page := p.Done().Omitted, newPage(room)
	at := min(q.From, len(all))
	for ; at < len(all); at++ {
		x := &all[at]
		key := fmt.Sprintf(`{"number": %d}`, x.Key.Number)
		if x.Key.IsText {
			key = fmt.Sprintf(`{"text": "%x"}`, x.Key.Text)
		}
		if !page.add(fmt.Appendf(nil, `{"history": "%x", "key": %s, "why": %q}`, x.History, key, string(x.Why))) {
			break
		}
	}
	return page.answer(at, at < len(all))
}

// named is a key of a history in a request.
type named struct {
	History Bytes `json:"history"`
	Key     Key   `json:"key"`
}

// hold makes a push that has not begun leave out the keys that the buffer lists.
func (d *Desk) hold(q *Request, data []byte) ([]byte, error) {
	p, ok := d.pushes.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	var all []named
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	names := make([]archive.Name, len(all))
	for i := range all {
		key, err := all[i].Key.plan()
		if err != nil {
			return nil, err
		}
		names[i] = archive.Name{History: string(all[i].History), Key: key}
	}
	p.Hold(names)
	return answer(struct{}{}, nil)
}

// pull begins a copy of the parts of a rank.
func (d *Desk) pull(q *Request) ([]byte, error) {
	if q.Rank < 0 {
		return nil, fmt.Errorf("%w: rank %d", ErrRequest, q.Rank)
	}
	from, err := d.source(q)
	if err != nil {
		return nil, err
	}
	b, err := durable.NewExcerpt(from, durable.Options{FS: d.FS, Dir: string(q.To), Direct: true}, archive.NamesOf(q.Rank))
	if err != nil {
		return nil, err
	}
	return d.began(q, b)
}

// explainArchive returns the status of an error of an archive; nil: it is none.
func explainArchive(err error) *status.Error {
	for _, x := range []struct {
		of   error
		what string
	}{
		{archive.ErrNoArchive, "the checkpoints of ranks go to an archive, or to a directory without a store"},
		{archive.ErrName, "an archive gives its histories to the parts of ranks, and cannot be a part of another one"},
		{archive.ErrLongName, "a history cannot be named in an archive"},
		{archive.ErrFiles, "the number of files is out of range"},
		{archive.ErrFull, "the archive is full"},
		{archive.ErrOtherArchive, "a rank cannot write to the archive"},
		{archive.ErrOtherStore, "a rank reads for others on its node"},
	} {
		if errors.Is(err, x.of) {
			return status.Wrap(status.Invalid, err, "%s", x.what)
		}
	}
	if errors.Is(err, archive.ErrSent) {
		return status.Wrap(status.Corrupt, err, "nothing of it was committed")
	}
	return nil
}
