package store

import (
	"slices"

	"go.uber.org/atomic"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
)

// layout is shared by checkpoints of the same shape: the caller's description, opaque here, and the spans of the regions. It lives as long as a
// checkpoint or a lease refers to it.
type layout struct {
	model.Layout
	id      uint64
	payload int64 // bytes of all regions
	users   int64 // checkpoints and leases that refer to it
	fault   error // why the text, which came from disk, does not describe the layout; nil: it does
}

// layouts interns layouts. The store's lock guards it.
type layouts struct {
	byText    map[string]*layout
	byID      map[uint64]*layout
	next      uint64
	describes func(*model.Layout) error
}

func newLayouts(describes func(*model.Layout) error) layouts {
	if describes == nil {
		describes = func(*model.Layout) error { return nil }
	}
	return layouts{byText: map[string]*layout{}, byID: map[uint64]*layout{}, next: 1, describes: describes}
}

// take returns the layout of this text and adds a user to it. text is copied if the layout is new.
func (ls *layouts) take(text []byte, regions []model.Region, slot int64) (*layout, error) {
	if l := ls.byText[string(text)]; l != nil {
		if !l.matches(regions, slot) {
			return nil, status.New(status.Invalid, "the same layout came with other regions before")
		}
		l.users++
		return l, nil
	}
	l := &layout{Layout: model.Layout{Text: string(text), Slot: slot, Spans: make([]model.Span, len(regions))}, id: ls.next, users: 1}
	end := int64(0)
	for i := range regions {
		s := model.Span{Offset: regions[i].Offset, Bytes: regions[i].Bytes}
		if s.Offset < end || s.Bytes < 0 || s.Offset > slot-s.Bytes {
			return nil, status.New(status.Invalid, "region %d (%d bytes at %d) overlaps another or leaves the slot of %d bytes", i, s.Bytes, s.Offset, slot)
		}
		l.Spans[i], end = s, s.Offset+s.Bytes
		l.payload += s.Bytes
	}
	ls.next++
	ls.byText[l.Text], ls.byID[l.id] = l, l
	return l, nil
}

// adopt returns the layout that a catalog has stored, and adds a user to it.
func (ls *layouts) adopt(stored *catalog.Layout) *layout {
	if l := ls.byText[stored.Text]; l != nil && l.Slot == stored.Slot && slices.Equal(l.Spans, stored.Spans) {
		l.users++
		return l
	}
	l := &layout{Layout: stored.Layout, id: ls.next, users: 1, fault: ls.describes(&stored.Layout)}
	for _, span := range l.Spans {
		l.payload += span.Bytes
	}
	ls.next++
	ls.byID[l.id] = l
	if ls.byText[l.Text] == nil { // two layouts with the same text come only from a store that another program has written
		ls.byText[l.Text] = l
	}
	return l
}

// undescribed is the error of a layout whose text does not describe it: checkpoints of the layout are not restored. nil: it does.
func (l *layout) undescribed() error {
	if l.fault == nil {
		return nil
	}
	return status.Wrap(status.Corrupt, l.fault, "the description of the checkpoint is not one of its regions").AtTier(status.TierDisk)
}

func (l *layout) matches(regions []model.Region, slot int64) bool {
	if len(l.Spans) != len(regions) || l.Slot != slot {
		return false
	}
	for i, s := range l.Spans {
		if s.Offset != regions[i].Offset || s.Bytes != regions[i].Bytes {
			return false
		}
	}
	return true
}

// end returns the offset at which the last region ends.
func (l *layout) end() int64 {
	if len(l.Spans) == 0 {
		return 0
	}
	last := l.Spans[len(l.Spans)-1]
	return last.Offset + last.Bytes
}

// at returns the region that contains this byte of the slot, or -1.
func (l *layout) at(offset int64) int {
	return slices.IndexFunc(l.Spans, func(s model.Span) bool { return offset >= s.Offset && offset-s.Offset < s.Bytes })
}

// run returns one span to read, and the rest of want. The span covers the first regions of want that lie so close together that one read of all is
// cheaper than a read of each.
func (l *layout) run(want []int32) (model.Span, []int32) {
	all := l.Spans[want[0]]
	for want = want[1:]; len(want) > 0; want = want[1:] {
		next := l.Spans[want[0]]
		if next.Offset-all.Offset-all.Bytes > closeBy {
			break
		}
		all.Bytes = next.Offset + next.Bytes - all.Offset
	}
	return all, want
}

// runs returns the spans of all runs of want.
func (l *layout) runs(want []int32) (spans []model.Span) {
	for len(want) > 0 {
		var span model.Span
		span, want = l.run(want)
		spans = append(spans, span)
	}
	return spans
}

// closeBy is the largest gap that one read covers: a disk reads this many bytes in the time that another request costs.
const closeBy = 64 << 10

func (ls *layouts) give(l *layout) {
	if l.users--; l.users == 0 {
		if ls.byText[l.Text] == l {
			delete(ls.byText, l.Text)
		}
		delete(ls.byID, l.id)
	}
}

// body is the store's part of a record. A single region's checksum lies on the same cache line.
type body struct {
	layout  *layout
	sums    []uint64 // per region; nil without checksums
	only    [1]uint64
	meta    string
	time    int64           // time of capture, ns since 1970 (UTC); 0: the catalog does not tell
	pending *pendingCapture // nil once the bytes have been taken

	serial uint64      // of this version in the catalog; 0: not yet assigned
	redone uint8       // how often its bytes were rewritten because a sync had failed
	gone   atomic.Bool // the version was dropped, replaced or consumed: transfers that copy it may stop
}

// keep copies the checksums into the body.
func (b *body) keep(sums []uint64) {
	if len(sums) > 0 {
		b.sums = append(b.only[:0:1], sums...)
	}
}

// mismatch returns the first region of want whose bytes at slot do not have the recorded checksum, or -1.
func (b *body) mismatch(slot []byte, want []int32) int {
	if b.sums == nil {
		return -1
	}
	for _, i := range want {
		s := b.layout.Spans[i]
		if checksum.Sum(slot[s.Offset:s.Offset+s.Bytes]) != b.sums[i] {
			return int(i)
		}
	}
	return -1
}

// all returns the indices of all regions.
func (l *layout) all() []int32 {
	idx := make([]int32, len(l.Spans))
	for i := range idx {
		idx[i] = int32(i)
	}
	return idx
}
