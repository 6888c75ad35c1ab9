package inspect

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"velocpy/gocore/base/pytext"
	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/status"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
)

// Session is a view of a store as of its opening. Any goroutine may call its methods; the calls run one at a time.
type Session struct {
	mu        sync.Mutex
	view      *durable.View
	histories []catalog.HistoryInfo // by name; nil before the first request for them
	kept      map[uint32]int64      // bytes that each history needs of dropped checkpoints
	listing   *listing              // the latest listing of a history
	locator   *durable.Locator
	owners    map[written]model.Key // by own objects; nil before the first request for a lineage
	located   *located              // the checkpoint of the last request for a lineage
	check     *durable.Check
	summary   durable.Summary
}

// Open opens a session. It changes nothing in the store.
func Open(o durable.Options) (*Session, error) {
	view, err := durable.Read(o)
	if err != nil {
		return nil, err
	}
	return &Session{view: view}, nil
}

// Close ends the session.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing.wait()
	return s.view.Close()
}

// About returns the facts about the store that are known without a request.
func (s *Session) About() durable.About { return s.view.About() }

// Ask answers a request in at most room bytes; room must be at least Room.
func (s *Session) Ask(q *Request, room int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing.wait()
	switch q.Op {
	case "histories":
		return s.eachHistory(q, room)
	case "rows":
		return s.rows(q, room)
	case "row":
		return s.row(q)
	case "blob":
		return s.blob(q, room)
	case "lineage":
		return s.lineage(q, room)
	case "check":
		return s.begin(q)
	case "step":
		return s.step(q)
	case "findings":
		return s.findings(q, room)
	}
	return nil, fmt.Errorf("%w: op is %q", ErrRequest, q.Op)
}

// Room is the least room that a caller must have for an answer.
const Room = 1 << 20

func (s *Session) eachHistory(q *Request, room int) ([]byte, error) {
	if s.histories == nil {
		s.histories = s.view.State().Histories()
		slices.SortFunc(s.histories, func(a, b catalog.HistoryInfo) int { return cmp.Compare(a.Name, b.Name) })
		s.kept = kept(s.view.State())
	}
	return lines(s.histories, q.From, room, func(to []byte, h catalog.HistoryInfo) []byte {
		if q.Head == "" {
			to = appendCount(to, h.Rows, 11)
			to = appendShown(appendRight(to, quantity.Sized(h.Bytes+s.kept[h.ID]), 11), h.Time)
			return appendLabel(append(to, "  "...), model.TextKey(h.Name))
		}
		to = pytext.Append(append(append(to, q.Head...), `"history": `...), h.Name)
		to = appendField(to, "checkpoints", h.Rows)
		to = appendField(to, "bytes", h.Bytes)
		to = appendField(to, "kept_bytes", s.kept[h.ID])
		to = appendTime(appendField(to, "last_serial", h.Last), "latest", h.Time)
		to = appendRetention(append(to, `, "retention": `...), h.Retention)
		return append(to, '}')
	})
}

// mostKeyText bounds the text of the keys that a retention names.
const mostKeyText = 64 << 10

func appendRetention(to []byte, r *model.Retention) []byte {
	if r == nil {
		return append(to, "null"...)
	}
	to = append(to, `{"named": `...)
	if r.Named {
		to = append(to, "true"...)
	} else {
		to = append(to, "false"...)
	}
	to = appendField(to, "last", r.Last)
	to = appendField(to, "every", r.Every)
	to = append(to, `, "keys": [`...)
	said, start := 0, len(to)
	for _, k := range r.Keys {
		if len(to)-start+6*len(k.Text) > mostKeyText {
			break
		}
		if said > 0 {
			to = append(to, ", "...)
		}
		to = appendKey(to, k)
		said++
	}
	to = appendField(append(to, ']'), "more_keys", len(r.Keys)-said)
	return append(appendBest(to, &r.Best), '}')
}

// appendBest describes which checkpoints are the best. The names are short enough to be listed.
func appendBest(to []byte, b *model.Best) []byte {
	to = appendField(to, "best", b.Count)
	to = append(to, `, "by": [`...)
	for i, name := range b.By {
		if i > 0 {
			to = append(to, ", "...)
		}
		to = pytext.Append(to, name)
	}
	if b.Largest {
		return append(to, `], "order": "max"`...)
	}
	return append(to, `], "order": "min"`...)
}

func (s *Session) history(name Bytes) (uint32, error) {
	id, ok := s.view.State().History(string(name))
	if !ok {
		return 0, fmt.Errorf("%w: history %q", ErrNone, string(name))
	}
	return id, nil
}

func (s *Session) rows(q *Request, room int) ([]byte, error) {
	if q.From == 0 {
		id, err := s.history(q.History)
		if err != nil {
			return nil, err
		}
		s.listing = newListing(s.view.State(), id, q, room)
	}
	if s.listing == nil || !s.listing.goesOn(q, room) {
		return nil, fmt.Errorf("%w: page %d is not the next one", ErrRequest, q.From)
	}
	return s.listing.next()
}

// rowWriter writes the lines of a listing. Runs of rows, unless they are reduced, differ only in their keys, serials and times. The text of the other
// columns is therefore formatted once per run.
type rowWriter struct {
	head         string
	run          catalog.Brief // the latest row
	begun        bool
	size         []byte // for a table: the columns from the size up to the serial
	middle, tail []byte // for a JSON object: the parts before and behind the serial
}

func (w *rowWriter) append(to []byte, b *catalog.Brief) []byte {
	if !w.begun || !alike(&w.run, b) {
		w.begin(b)
	}
	if w.head == "" {
		to = appendRight(append(to, w.size...), strconv.FormatUint(b.Serial, 10), 10)
		to = appendShown(to, b.Time)
		return appendLabel(append(to, "  "...), b.Key)
	}
	to = appendKey(append(append(to, w.head...), `, "key": `...), b.Key)
	to = strconv.AppendUint(append(to, w.middle...), b.Serial, 10)
	to = appendTime(to, "captured", b.Time)
	return append(to, w.tail...)
}

// alike tells whether two rows differ in nothing but their keys, serials and times.
func alike(a, b *catalog.Brief) bool {
	return a.Layout == b.Layout && a.Meta == b.Meta && a.Summed == b.Summed && a.Content == b.Content && a.Stored == b.Stored &&
		a.Sources == b.Sources && a.SourceBytes == b.SourceBytes
}

func (w *rowWriter) begin(b *catalog.Brief) {
	w.run, w.begun = *b, true
	bytes := payload(b.Layout)
	stored := "-"
	if b.Content.Readable() {
		stored = quantity.Sized(b.Stored)
	}
	w.size = appendRight(appendRight(w.size[:0], quantity.Sized(bytes), 10), stored, 11)
	w.size = appendCount(w.size, len(b.Layout.Spans), 9)
	w.size = appendRight(w.size, quantity.Sized(int64(b.Meta)), 10)
	w.middle = appendField(w.middle[:0], "bytes", bytes)
	w.middle = append(appendField(w.middle, "regions", len(b.Layout.Spans)), `, "serial": `...)
	w.tail = appendField(w.tail[:0], "meta_bytes", b.Meta)
	w.tail = appendField(appendForm(w.tail, b.Content), "stored_bytes", b.Stored)
	w.tail = appendField(appendField(w.tail, "sources", b.Sources), "source_bytes", b.SourceBytes)
	w.tail = appendBool(w.tail, "checksums", b.Summed)
	w.tail = append(appendBool(w.tail, "readable", b.Content.Readable()), '}')
}

func appendForm(to []byte, c catalog.Content) []byte {
	return append(append(append(to, `, "form": "`...), c.String()...), '"')
}

func payload(l *catalog.Layout) (bytes int64) {
	for _, s := range l.Spans {
		bytes += s.Bytes
	}
	return bytes
}

func (s *Session) find(q *Request) (row catalog.Row, err error) {
	id, err := s.history(q.History)
	if err != nil {
		return row, err
	}
	key, err := q.Key.plan()
	if err != nil {
		return row, err
	}
	row, ok := s.view.State().Find(id, key)
	if !ok {
		return row, fmt.Errorf("%w: checkpoint %s of history %q", ErrNone, key, string(q.History))
	}
	return row, nil
}

func (s *Session) row(q *Request) ([]byte, error) {
	row, err := s.find(q)
	if err != nil {
		return nil, err
	}
	stored, others := int64(0), int64(0)
	if row.Readable() {
		stored = row.Bytes()
	}
	for _, extents := range row.Sources {
		others += bytesOf(extents)
	}
	lineage, number := any(nil), any(nil)
	if d := row.Difference; d != nil {
		lineage, number = fmt.Sprintf("%016x", d.Lineage), d.Number
	}
	return answer(map[string]any{
		"form": row.Content.String(), "stored_bytes": stored, "sources": len(row.Sources), "source_bytes": others,
		"lineage": lineage, "number": number,
		"serial": row.Serial, "readable": row.Readable(), "regions": len(row.Layout.Spans), "bytes": payload(row.Layout), "slot_bytes": row.Layout.Slot,
		"alignment": row.Align, "meta_bytes": len(row.Meta), "layout_bytes": len(row.Layout.Text), "checksums": row.Sums != nil,
		"leaves": len(row.Leaves), "captured": json.RawMessage(appendParsed(nil, row.Time)),
	}, nil)
}

// blob returns bytes of one part of a row, beginning with byte q.From, as many as fit the room.
func (s *Session) blob(q *Request, room int) ([]byte, error) {
	row, err := s.find(q)
	if err != nil {
		return nil, err
	}
	if err := s.view.Described(row.Layout); q.What == "layout" && err != nil {
		return nil, status.Wrap(status.Damaged, err, "checkpoint %s of history %.80q has a description that is none", row.Key, string(q.History))
	}
	p, err := s.blobOf(&row, q.What)
	if err != nil {
		return nil, err
	}
	from := min(q.From, len(p))
	end := min(len(p), from+room-headRoom)
	return answer(head(end, end < len(p)), p[from:end])
}

func (s *Session) blobOf(row *catalog.Row, what string) (p []byte, err error) {
	switch what {
	case "layout":
		return []byte(row.Layout.Text), nil
	case "meta":
		return []byte(row.Meta), nil
	case "spans":
		for _, s := range row.Layout.Spans {
			p = binary.LittleEndian.AppendUint64(p, uint64(s.Offset))
			p = binary.LittleEndian.AppendUint64(p, uint64(s.Bytes))
		}
	case "sums":
		for _, sum := range row.Sums {
			p = binary.LittleEndian.AppendUint64(p, sum)
		}
	case "extents":
		for _, x := range row.Extents {
			p = binary.LittleEndian.AppendUint64(p, x.File)
			p = binary.LittleEndian.AppendUint64(p, uint64(s.view.InFile(x)))
			p = binary.LittleEndian.AppendUint64(p, uint64(x.Bytes))
		}
	default:
		return nil, fmt.Errorf("%w: what is %q", ErrRequest, what)
	}
	return p, nil
}

func (s *Session) begin(q *Request) ([]byte, error) {
	check, err := s.view.Check(durable.Scope{Data: q.Data, Part: q.Part, Parts: q.Parts, Share: q.Share, Seed: q.Seed})
	if err != nil {
		return nil, err
	}
	s.check = check
	return s.progress(false)
}

// longestStep bounds a step, so that a caller that wants to stop does not wait long.
const longestStep = time.Minute

func (s *Session) step(q *Request) ([]byte, error) {
	if s.check == nil {
		return nil, fmt.Errorf("%w: no check was begun", ErrRequest)
	}
	done, err := s.check.Step(q.enough())
	if err != nil {
		return nil, err
	}
	return s.progress(done)
}

// enough returns a function that tells when the time of a step is over.
func (q *Request) enough() func() bool {
	long := time.Duration(min(max(q.Milliseconds, 1), longestStep.Milliseconds())) * time.Millisecond
	end := time.Now().Add(long)
	return func() bool { return time.Now().After(end) }
}

func (s *Session) progress(done bool) ([]byte, error) {
	s.summary = s.check.Summary()
	m := &s.summary
	unused := int64(0)
	for _, u := range m.Unused {
		unused += u.Bytes
	}
	return answer(map[string]any{
		"done": done, "checkpoints": m.Checkpoints, "bytes": m.Bytes, "chosen": m.Chosen, "chosen_bytes": m.ChosenBytes, "read_bytes": m.Read,
		"without_checksums": m.Unsummed, "unknown": m.Unknown, "superseded": m.Superseded, "damaged": m.Damaged, "torn_bytes": m.Torn,
		"unused_files": len(m.Unused), "unused_bytes": unused, "faults": len(m.Faults),
	}, nil)
}

func (s *Session) findings(q *Request, room int) ([]byte, error) {
	switch q.What {
	case "faults":
		return lines(s.summary.Faults, q.From, room, appendFault)
	case "unused":
		return lines(s.summary.Unused, q.From, room, appendUnused)
	}
	return nil, fmt.Errorf("%w: what is %q", ErrRequest, q.What)
}
