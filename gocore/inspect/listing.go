package inspect

import (
	"velocpy/gocore/base/pytext"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/tier/disk/catalog"
)

// listing lists the checkpoints of a history page by page. While the caller prints one page, a goroutine makes the next. Meanwhile no other code may
// access the State; wait returns when that goroutine has ended.
type listing struct {
	state   *catalog.State
	id      uint32
	history string
	head    string // begin of the JSON object in each line; empty: a table for people
	room    int
	place   catalog.Cursor // where the next page begins
	number  int            // of the next page
	made    *page          // the next page; valid once ready is closed
	more    bool           // … and whether another page follows it
	ready   chan struct{}  // nil: no goroutine is making a page
}

func newListing(s *catalog.State, id uint32, q *Request, room int) *listing {
	l := &listing{state: s, id: id, history: string(q.History), head: q.Head, room: room}
	l.make()
	return l
}

// goesOn tells whether a request is for the next page.
func (l *listing) goesOn(q *Request, room int) bool {
	return l.made != nil && q.From == l.number && l.history == string(q.History) && l.head == q.Head && l.room == room
}

// next returns the page that was made, and starts making the one after it.
func (l *listing) next() ([]byte, error) {
	p, more := l.made, l.more
	l.made = nil
	l.number++
	if more {
		l.ready = make(chan struct{})
		safego.Go("listing", func() {
			defer close(l.ready)
			l.make()
		})
	}
	return p.answer(l.number, more)
}

// wait returns when no goroutine accesses the State.
func (l *listing) wait() {
	if l != nil && l.ready != nil {
		<-l.ready
		l.ready = nil
	}
}

func (l *listing) make() {
	p := newPage(l.room)
	w := rowWriter{head: l.head}
	if l.head != "" {
		w.head = string(pytext.Append([]byte(l.head+`"history": `), l.history))
	}
	var line []byte
	l.place, l.more = l.state.List(l.id, l.place, func(b catalog.Brief) bool {
		line = w.append(line[:0], &b)
		return p.add(line)
	})
	l.made = p
}
