package inspect

import (
	"encoding/json"
	"strconv"

	"velocpy/gocore/base/pytext"
	"velocpy/gocore/tier/disk/durable"
)

// headRoom is reserved for the line before a body.
const headRoom = 1 << 10

// page is a body of lines that is being filled, behind room for the line before it.
type page struct {
	body []byte
	n    int // lines
}

// mostPage bounds the size of a page, whatever room the caller has.
const mostPage = 4 << 20

func newPage(room int) *page { return &page{body: make([]byte, headRoom, min(room, mostPage))} }

// add appends a line if there is room for it. A line that does not fit an empty page becomes an empty line.
func (p *page) add(line []byte) bool {
	if len(p.body)+len(line)+1 > cap(p.body) {
		if p.n > 0 {
			return false
		}
		line = nil
	}
	p.body = append(append(p.body, line...), '\n')
	p.n++
	return true
}

// answer returns a line of JSON, followed by a body.
func answer(head any, body []byte) ([]byte, error) {
	line, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	return append(append(line, '\n'), body...), nil
}

// paged is the line before a page.
type paged struct {
	Next *int `json:"next"` // null: this is the last page
}

// head returns the line before a page; next is the number of the following page.
func head(next int, more bool) paged {
	if !more {
		return paged{}
	}
	return paged{&next}
}

// answer puts the line before the body.
func (p *page) answer(next int, more bool) ([]byte, error) {
	line, err := json.Marshal(head(next, more))
	if err != nil {
		return nil, err
	}
	whole := p.body[headRoom-len(line)-1:]
	copy(whole, append(line, '\n'))
	return whole, nil
}

// lines returns a page of the list's lines, beginning with line from.
func lines[T any](list []T, from, room int, line func(to []byte, x T) []byte) ([]byte, error) {
	p := newPage(room)
	var text []byte
	for from < len(list) {
		text = line(text[:0], list[from])
		if !p.add(text) {
			break
		}
		from++
	}
	return p.answer(from, from < len(list))
}

func appendFault(to []byte, f durable.Fault) []byte {
	to = append(to, `{"kind": "`...)
	to = append(append(to, f.Kind...), '"')
	to = append(to, `, "file": `...)
	to = pytext.Append(to, f.File)
	to = appendField(to, "offset", f.Offset)
	to = appendField(to, "bytes", f.Bytes)
	to = appendBool(to, "harmless", f.Harmless)
	to = appendBool(to, "fleeting", f.Fleeting)
	if r := f.Row; r != nil {
		to = pytext.Append(append(to, `, "history": `...), r.History)
		to = appendKey(append(to, `, "key": `...), r.Key)
		to = appendField(to, "serial", r.Serial)
	}
	if r := f.Row; r != nil && f.Kind != durable.Description {
		to = appendField(to, "region", r.Region)
		to = appendField(to, "region_offset", r.Offset)
		to = appendField(to, "region_bytes", r.Bytes)
	}
	to = pytext.Append(append(to, `, "why": `...), pytext.Cut(f.Why, mostWhy))
	return append(to, '}')
}

// mostWhy bounds an explanation, to keep it readable.
const mostWhy = 1 << 10

func appendUnused(to []byte, u durable.Unused) []byte {
	to = pytext.Append(append(to, `{"file": `...), u.File)
	to = appendField(to, "bytes", u.Bytes)
	return append(to, '}')
}

func appendRight(to []byte, text string, width int) []byte {
	for range width - len(text) {
		to = append(to, ' ')
	}
	return append(to, text...)
}

func appendCount(to []byte, n int, width int) []byte { return appendRight(to, strconv.Itoa(n), width) }
