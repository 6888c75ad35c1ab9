package archive

import (
	"cmp"
	"errors"
	"fmt"

	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/durable"
)

// bucketShare is the part of a rank's share that is in a bucket.
type bucketShare struct {
	at         *bucket.Bucket
	recognized bool
	uploaded   []bucket.Pack
	conflict   bool         // another process has collected what was being uploaded
	told       bucket.Costs // in earlier reports
}

// NewBucketShare is NewShare for an archive in a bucket.
func NewBucketShare(number int, stores []Source, to *bucket.Bucket) *Share {
	s := NewShare(number, stores, durable.Options{Dir: to.Place()})
	s.bucket = &bucketShare{at: to}
	return s
}

// recognize verifies that this process reaches the archive that the planning process has planned for.
func (b *bucketShare) recognize(store [16]byte) error {
	if b.recognized {
		return nil
	}
	there, err := b.at.Store()
	if errors.Is(err, bucket.ErrNone) || errors.Is(err, bucket.ErrForeign) || err == nil && there != store {
		return fmt.Errorf("%s: %w", b.at.Place(), errors.Join(ErrOtherArchive, err))
	}
	b.recognized = err == nil
	return err
}

// tell adds to a report what only archives in buckets have.
func (b *bucketShare) tell(report *Report) {
	costs := b.at.Costs()
	report.Conflict, report.Costs = b.conflict, bucket.Costs{Requests: costs.Requests - b.told.Requests, Sent: costs.Sent - b.told.Sent, Received: costs.Received - b.told.Received}
	report.Packs = b.uploaded
	b.uploaded, b.conflict, b.told = nil, false, costs
}

// Upload uploads the packs of the plan that this rank uploads, by so many senders together; 0: DefaultWriters.
func (s *Share) Upload(senders int) error {
	senders = cmp.Or(senders, DefaultWriters)
	if s.plan == nil || s.bucket == nil {
		return errShare
	}
	contents, err := s.contents()
	if err != nil {
		return err
	}
	var parts []*part
	for _, r := range s.reads {
		if r.moved.Known || r.gone {
			continue
		}
		if r.rooms, err = r.of.from.Rooms(&r.row); err != nil {
			return err
		}
		parts = append(parts, &r.part)
	}
	if err := prove(senders, parts); err != nil {
		return err
	}
	var fillings []bucket.Filling
	for k := range s.plan.Packs {
		if c := contents[&s.plan.Packs[k]]; c != nil {
			fillings = append(fillings, c.filling(&s.plan.Packs[k].Pack))
		}
	}
	err = s.bucket.at.Upload(senders, fillings...)
	if errors.Is(err, bucket.ErrConflict) {
		s.bucket.conflict = true
		return nil
	}
	if err != nil {
		return err
	}
	for _, x := range fillings {
		s.bucket.uploaded = append(s.bucket.uploaded, *x.Pack)
	}
	return nil
}

// contents are the packs of the plan that this rank uploads, and what they are filled with.
func (s *Share) contents() (map[*PlannedPack]*content, error) {
	mine, copies := map[int64]*PlannedPack{}, map[int64][]Transfer{}
	for k := range s.plan.Packs {
		if x := &s.plan.Packs[k]; x.Leader == s.rank {
			mine[x.File()] = x
		}
	}
	for _, c := range s.plan.Copies {
		if mine[c.File] == nil {
			continue
		}
		r := s.reads[c.Part]
		if r == nil {
			return nil, errShare
		}
		copies[c.File] = append(copies[c.File], c)
		r.news = append(r.news, move{room: durable.Room{From: c.From, End: c.End}, at: c.At})
	}
	contents, taken := map[*PlannedPack]*content{}, map[*part]int{}
	for k := range s.plan.Packs { // in their order, which is that of a part's rooms
		x := &s.plan.Packs[k]
		if mine[x.File()] != x {
			continue
		}
		to := newContent()
		for _, c := range copies[x.File()] {
			of := &s.reads[c.Part].part
			m := &of.news[taken[of]]
			if taken[of]++; m.at != x.Offset()+to.bytes {
				return nil, errShare
			}
			to.add(of, m)
		}
		if to.bytes != x.Bytes {
			return nil, errShare
		}
		contents[x] = to
	}
	return contents, nil
}
