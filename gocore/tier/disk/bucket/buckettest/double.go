// Package buckettest is an object store in memory, for tests.
package buckettest

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"sync"

	"velocpy/gocore/base/wire"
)

// Double is an object store in memory. Before is called with each request, and may fail it; After with its reply. Objects are by their keys in the bucket.
type Double struct {
	Objects map[string][]byte
	Before  func(q *wire.Request) error
	After   func(q *wire.Request, r *wire.Reply) error
	Age     float64 // of all objects and uploads

	mu      sync.Mutex
	uploads map[string]map[int][]byte
	begun   int
}

// New returns an empty object store.
func New() *Double {
	return &Double{Objects: map[string][]byte{}, uploads: map[string]map[int][]byte{}}
}

// Uploads is how many uploads have begun and not ended.
func (d *Double) Uploads() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.uploads)
}

// Ask implements bucket.Server.
func (d *Double) Ask(q *wire.Request, body, into []byte) (r wire.Reply, n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Before != nil {
		if err := d.Before(q); err != nil {
			return r, 0, err
		}
	}
	n = d.answer(q, slices.Clone(body), into, &r)
	r.Requests = 1
	if d.After != nil {
		err = d.After(q, &r)
	}
	return r, n, err
}

func sumOf(body []byte) string {
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

func (d *Double) answer(q *wire.Request, body, into []byte, r *wire.Reply) int {
	object, ok := d.Objects[q.Key]
	switch q.Op {
	case wire.Get:
		if !ok {
			r.Why = wire.Absent
			return 0
		}
		return copy(into[:q.Bytes], object[min(q.From, int64(len(object))):])
	case wire.Put:
		if sumOf(body) != q.Sum {
			r.Why = wire.Altered
		} else if ok && q.New {
			r.Why = wire.Exists
		} else {
			d.Objects[q.Key] = body
		}
	case wire.List:
		for _, key := range slices.Sorted(maps.Keys(d.Objects)) {
			if !strings.HasPrefix(key, q.Prefix) || key <= q.After {
				continue
			}
			if r.More = len(r.Objects) == q.Most; r.More {
				break
			}
			object := d.Objects[key]
			r.Objects = append(r.Objects, wire.Object{Key: key, Bytes: int64(len(object)), Age: d.Age, ETag: sumOf(object)})
		}
	case wire.Delete:
		for _, key := range q.Keys {
			delete(d.Objects, key)
		}
	case wire.Begin:
		r.Upload = fmt.Sprintf("%s %d", q.Key, d.begun)
		d.begun++
		d.uploads[r.Upload] = map[int][]byte{}
	case wire.Part:
		if d.uploads[q.Upload] == nil {
			r.Why = wire.Absent
			return 0
		}
		d.uploads[q.Upload][q.Number] = body
		r.Tag = wire.Tag{Number: q.Number, Sum: q.Sum}
	case wire.Complete:
		if d.uploads[q.Upload] == nil {
			r.Why = wire.Absent
			return 0
		}
		var whole []byte
		for _, tag := range q.Parts {
			if sumOf(d.uploads[q.Upload][tag.Number]) != tag.Sum {
				r.Why = wire.Absent // another process has sent other bytes
				return 0
			}
			whole = append(whole, d.uploads[q.Upload][tag.Number]...)
		}
		d.Objects[q.Key] = whole
		delete(d.uploads, q.Upload)
	case wire.Abort:
		delete(d.uploads, q.Upload)
	case wire.Parts:
		if d.uploads[q.Upload] == nil {
			r.Why = wire.Absent
			return 0
		}
		for number, body := range d.uploads[q.Upload] {
			if number > q.Number {
				r.Tags = append(r.Tags, wire.Tag{Number: number, Sum: sumOf(body), Bytes: int64(len(body))})
			}
		}
		slices.SortFunc(r.Tags, func(a, b wire.Tag) int { return a.Number - b.Number })
		if most := 2; len(r.Tags) > most { // short pages
			r.Tags, r.More = r.Tags[:most], true
		}
	case wire.Uploads:
		for number := range d.uploads {
			if !strings.HasPrefix(number, q.Prefix) {
				continue
			}
			r.Objects = append(r.Objects, wire.Object{Key: strings.Fields(number)[0], Upload: number, Age: d.Age})
		}
	}
	return 0
}
