package checkpoint

import (
	"slices"

	"go.uber.org/atomic"

	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
)

// Layout is shared by checkpoints of the same shape: the caller's description, opaque here, and the spans of the regions. It lives as long as a
// checkpoint or a lease refers to it.
type Layout struct {
	model.Layout
	ID      uint64
	Payload int64 // bytes of all regions
	users   int64 // checkpoints and leases that refer to it
	fault   error // why the text, which came from disk, does not describe the layout; nil: it does
	all     atomic.Pointer[[]int32]
}

// Layouts interns layouts. The store's lock guards it.
type Layouts struct {
	byText    map[string]*Layout
	byID      map[uint64]*Layout
	next      uint64
	describes func(*model.Layout) error
}

// NewLayouts returns an empty table. describes checks the text of a layout that comes from disk against the layout; nil: texts are not checked.
func NewLayouts(describes func(*model.Layout) error) Layouts {
	if describes == nil {
		describes = func(*model.Layout) error { return nil }
	}
	return Layouts{byText: map[string]*Layout{}, byID: map[uint64]*Layout{}, next: 1, describes: describes}
}

// Take returns the layout of this text and adds a user to it. text is copied if the layout is new.
func (ls *Layouts) Take(text []byte, regions []model.Region, slot int64) (*Layout, error) {
	if l := ls.byText[string(text)]; l != nil {
		if !l.matches(regions, slot) {
			return nil, status.New(status.Invalid, "the same layout came with other regions before")
		}
		l.users++
		return l, nil
	}
	l := &Layout{Layout: model.Layout{Text: string(text), Slot: slot, Spans: make([]model.Span, len(regions))}, ID: ls.next, users: 1}
	end := int64(0)
	for i := range regions {
		s := model.Span{Offset: regions[i].Offset, Bytes: regions[i].Bytes}
		if s.Offset < end || s.Bytes < 0 || s.Offset > slot-s.Bytes {
			return nil, status.New(status.Invalid, "region %d (%d bytes at %d) overlaps another or leaves the slot of %d bytes", i, s.Bytes, s.Offset, slot)
		}
		l.Spans[i], end = s, s.Offset+s.Bytes
		l.Payload += s.Bytes
	}
	ls.next++
	ls.byText[l.Text], ls.byID[l.ID] = l, l
	return l, nil
}

// Adopt returns the layout that a catalog has stored, and adds a user to it.
func (ls *Layouts) Adopt(stored *model.Layout) *Layout {
	if l := ls.Find(stored); l != nil {
		l.users++
		return l
	}
	l := &Layout{Layout: *stored, ID: ls.next, users: 1, fault: ls.describes(stored)}
	for _, span := range l.Spans {
		l.Payload += span.Bytes
	}
	ls.next++
	ls.byID[l.ID] = l
	if ls.byText[l.Text] == nil { // two layouts with the same text come only from a store that another program has written
		ls.byText[l.Text] = l
	}
	return l
}

// Find returns the layout that a catalog has stored, if it has a user; otherwise nil. It adds no user.
func (ls *Layouts) Find(stored *model.Layout) *Layout {
	if l := ls.byText[stored.Text]; l != nil && l.Slot == stored.Slot && slices.Equal(l.Spans, stored.Spans) {
		return l
	}
	return nil
}

// Share adds a user.
func (l *Layout) Share() { l.users++ }

// ByID returns the layout with this number; nil when there is none any more.
func (ls *Layouts) ByID(id uint64) *Layout { return ls.byID[id] }

// Len returns the number of layouts that are in use.
func (ls *Layouts) Len() int { return len(ls.byID) }

// Undescribed is the error of a layout whose text does not describe it: checkpoints of the layout are not restored. nil: it does.
func (l *Layout) Undescribed() error {
	if l.fault == nil {
		return nil
	}
	return status.Wrap(status.Corrupt, l.fault, "the description of the checkpoint is not one of its regions").AtTier(status.TierDisk)
}

func (l *Layout) matches(regions []model.Region, slot int64) bool {
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

// End returns the offset at which the last region ends.
func (l *Layout) End() int64 {
	if len(l.Spans) == 0 {
		return 0
	}
	last := l.Spans[len(l.Spans)-1]
	return last.Offset + last.Bytes
}

// At returns the region that contains this byte of the slot, or -1.
func (l *Layout) At(offset int64) int {
	return slices.IndexFunc(l.Spans, func(s model.Span) bool { return offset >= s.Offset && offset-s.Offset < s.Bytes })
}

// Run returns one span to read, and the rest of want. The span covers the first regions of want that lie so close together that one read of all is
// cheaper than a read of each.
func (l *Layout) Run(want []int32) (model.Span, []int32) {
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

// Runs returns the spans of all runs of want.
func (l *Layout) Runs(want []int32) (spans []model.Span) {
	for len(want) > 0 {
		var span model.Span
		span, want = l.Run(want)
		spans = append(spans, span)
	}
	return spans
}

// closeBy is the largest gap that one read covers: a disk reads this many bytes in the time that another request costs.
const closeBy = 64 << 10

// Give takes a user away. The layout is forgotten with its last one.
func (ls *Layouts) Give(l *Layout) {
	if l.users--; l.users == 0 {
		if ls.byText[l.Text] == l {
			delete(ls.byText, l.Text)
		}
		delete(ls.byID, l.ID)
	}
}

// All returns the indices of all regions. The caller does not change the list.
func (l *Layout) All() []int32 {
	if all := l.all.Load(); all != nil {
		return *all
	}
	all := make([]int32, len(l.Spans))
	for i := range all {
		all[i] = int32(i)
	}
	l.all.Store(&all)
	return all
}
