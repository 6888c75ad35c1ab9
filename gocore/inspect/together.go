package inspect

import (
	"encoding/json"
	"errors"
	"fmt"

	"velocpy/gocore/base/pytext"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/tier/disk/archive"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/durable"
)

// A push of ranks on several nodes. The planning process collects the metadata of stores that it cannot read, asks for plans, and hands in reports; each rank
// carries out its share. A plan is answered page by page. What a request brings, and the bytes of checkpoints, lie in the caller's buffer.

// recorded is the metadata of a store, for a process on another node.
type recorded []byte

func (recorded) Close() error { return nil }

// arrived is the metadata of stores that a push is about to begin with.
type arrived map[int][]byte

func (arrived) Close() error { return nil }

// rankSources are the stores of ranks. Those in from are known by their metadata alone.
func (d *Desk) rankSources(ranks []Rank, from arrived) ([]archive.Source, error) {
	all, numbers := make([]archive.Source, len(ranks)), map[int]bool{}
	for i, r := range ranks {
		if r.Rank < 0 || numbers[r.Rank] {
			return nil, fmt.Errorf("%w: rank %d", ErrRequest, r.Rank)
		}
		numbers[r.Rank] = true
		all[i] = archive.Source{Rank: r.Rank, Store: durable.Options{FS: d.FS, Dir: string(r.Path), Direct: true}, Metadata: from[r.Rank]}
	}
	return all, nil
}

// metadata reads the metadata of a store.
func (d *Desk) metadata(q *Request) ([]byte, error) {
	all, err := archive.Metadata(d.options(q))
	if err != nil {
		return nil, err
	}
	if err := d.recordings.put(q.View, all); err != nil {
		return nil, err
	}
	return answer(map[string]any{"bytes": len(all)}, nil)
}

// readMetadata fills the buffer from an offset of the metadata on.
func (d *Desk) readMetadata(q *Request, data []byte) ([]byte, error) {
	all, ok := d.recordings.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	if q.From > len(all)-len(data) {
		return nil, fmt.Errorf("%w: the metadata from %d to %d, and it ends at %d", ErrRequest, q.From, q.From+len(data), len(all))
	}
	copy(data, all[q.From:])
	return answer(struct{}{}, nil)
}

// takeMetadata keeps the metadata of ranks' stores for a push of this number. The buffer has one behind the other.
func (d *Desk) takeMetadata(q *Request, data []byte) ([]byte, error) {
	all, ok := d.arrivals.get(q.View)
	if !ok {
		all = arrived{}
		if err := d.arrivals.put(q.View, all); err != nil {
			return nil, err
		}
	}
	rest := append([]byte{}, data...)
	for _, c := range q.Catalogs {
		if c.Bytes < 0 || c.Bytes > len(rest) {
			return nil, fmt.Errorf("%w: rank %d has metadata of %s, and the buffer has %s more", ErrRequest, c.Rank, quantity.Exact(int64(c.Bytes)), quantity.Exact(int64(len(rest))))
		}
		all[c.Rank], rest = rest[:c.Bytes:c.Bytes], rest[c.Bytes:] // never nil: the push is not to read a store of another node
	}
	return answer(struct{}{}, nil)
}

// plan returns a page of the plan of what a push brings next. The first page makes the plan.
func (d *Desk) plan(q *Request, room int) ([]byte, error) {
	p, ok := d.pushes.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	if q.From == 0 {
		plan, err := p.Plan(q.Nodes)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(plan)
		if err != nil {
			return nil, err
		}
		d.plans.take(q.View)
		if err := d.plans.put(q.View, text); err != nil {
			return nil, err
		}
	}
	text, ok := d.plans.get(q.View)
	if !ok || q.From > len(text) {
		return nil, d.stale()
	}
	end := min(len(text), q.From+room-headRoom)
	return answer(head(end, end < len(text)), text[q.From:end])
}

// land takes the reports on the plan that a push has made last.
func (d *Desk) land(q *Request, data []byte) ([]byte, error) {
	p, ok := d.pushes.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	var reports []archive.Report
	if err := json.Unmarshal(data, &reports); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if err := p.Land(reports); err != nil {
		return nil, err
	}
	return answer(struct{}{}, nil)
}

// share prepares the share of a rank.
func (d *Desk) share(q *Request) ([]byte, error) {
	from, err := d.rankSources(q.Ranks, nil)
	if err != nil {
		return nil, err
	}
	s, err := d.newShare(q.Rank, from, string(q.To))
	if err != nil {
		return nil, err
	}
	if err := d.shares.put(q.View, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return answer(struct{}{}, nil)
}

// newShare prepares a share of a push into a directory or a bucket.
func (d *Desk) newShare(rank int, from []archive.Source, to string) (*archive.Share, error) {
	if !bucket.IsPlace(to) {
		return archive.NewShare(rank, from, durable.Options{FS: d.FS, Dir: to, Direct: true}), nil
	}
	at, err := d.at(to)
	if err != nil {
		return nil, err
	}
	return archive.NewBucketShare(rank, from, at), nil
}

// mostReason bounds why a part could not be read, so that a report of many parts is no longer than an answer may be.
const mostReason = 100

// doShare carries out a step of a rank's share.
func (d *Desk) doShare(q *Request, data []byte) ([]byte, error) {
	s, ok := d.shares.get(q.View)
	if !ok {
		return nil, d.stale()
	}
	switch q.Op {
	case "share_begin":
		plan := &archive.Plan{}
		if err := json.Unmarshal(data, plan); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
		}
		return answered(s.Begin(plan))
	case "share_read":
		sum, sound, err := s.Read(q.Copy, q.At, data)
		if err != nil {
			return nil, err
		}
		return answer(map[string]any{"sum": sum, "sound": sound}, nil)
	case "share_write":
		return answered(s.Write(q.File, q.At, data, q.Sum))
	case "share_copy":
		return answered(s.Copy(q.Copy, q.At, q.Length))
	case "share_upload":
		return answered(s.Upload(q.Writers))
	}
	report, err := s.End()
	if err != nil {
		return nil, err
	}
	for i := range report.Failed {
		report.Failed[i].Why = pytext.Cut(report.Failed[i].Why, mostReason)
	}
	return answer(report, nil)
}

// answered is the answer to a request that has nothing to tell.
func answered(err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return answer(struct{}{}, nil)
}
