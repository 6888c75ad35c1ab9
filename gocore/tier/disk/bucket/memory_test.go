package bucket

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"velocpy/gocore/base/lane"
)

// double is an object store in memory. before is called with each request, and may fail it; after with its reply.
type double struct {
	mu      sync.Mutex
	objects map[string][]byte
	uploads map[string]map[int][]byte
	before  func(q *lane.Request) error
	after   func(q *lane.Request, r *lane.Reply) error
}

func newDouble() *double {
	return &double{objects: map[string][]byte{}, uploads: map[string]map[int][]byte{}}
}

func (d *double) Ask(q *lane.Request, body, into []byte) (r lane.Reply, n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before != nil {
		if err := d.before(q); err != nil {
			return r, 0, err
		}
	}
	n = d.answer(q, slices.Clone(body), into, &r)
	r.Requests = 1
	if d.after != nil {
		err = d.after(q, &r)
	}
	return r, n, err
}

func (d *double) answer(q *lane.Request, body, into []byte, r *lane.Reply) int {
	object, ok := d.objects[q.Key]
	switch q.Op {
	case lane.Get:
		if !ok {
			r.Why = lane.Absent
			return 0
		}
		return copy(into[:q.Bytes], object[min(q.From, int64(len(object))):])
	case lane.Put:
		if sumOf(body) != q.Sum {
			r.Why = lane.Altered
		} else if ok && q.New {
			r.Why = lane.Exists
		} else {
			d.objects[q.Key] = body
		}
	case lane.List:
		for _, key := range slices.Sorted(maps.Keys(d.objects)) {
			if !strings.HasPrefix(key, q.Prefix) || key <= q.After {
				continue
			}
			if r.More = len(r.Objects) == q.Most; r.More {
				break
			}
			r.Objects = append(r.Objects, lane.Object{Key: key, Bytes: int64(len(d.objects[key])), Age: 1})
		}
	case lane.Delete:
		for _, key := range q.Keys {
			delete(d.objects, key)
		}
	case lane.Begin:
		r.Upload = fmt.Sprintf("%s %d", q.Key, len(d.uploads))
		d.uploads[r.Upload] = map[int][]byte{}
	case lane.Part:
		if d.uploads[q.Upload] == nil {
			r.Why = lane.Absent
			return 0
		}
		d.uploads[q.Upload][q.Number] = body
		r.Tag = lane.Tag{Number: q.Number, Sum: q.Sum}
	case lane.Complete:
		var whole []byte
		for _, tag := range q.Parts {
			whole = append(whole, d.uploads[q.Upload][tag.Number]...)
		}
		d.objects[q.Key] = whole
		delete(d.uploads, q.Upload)
	case lane.Abort:
		delete(d.uploads, q.Upload)
	case lane.Uploads:
		for number := range d.uploads {
			r.Objects = append(r.Objects, lane.Object{Key: strings.Fields(number)[0], Upload: number, Age: 1})
		}
	}
	return 0
}
