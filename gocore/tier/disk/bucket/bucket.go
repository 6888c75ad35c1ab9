// Package bucket keeps an archive in a bucket of an object store (S3), under a prefix.
//
//	velocpy.store       the identity: the format's version, and the archive's number. Made once, by a conditional PUT
//	commits/<number>    what the archive has after commit number n. Made once, by a conditional PUT: the numbers ascend by one
//	catalogs/<id>       a whole catalog, which later commits rely on
//	packs/<number>-<id> the bytes of checkpoints
//
// A commit names the whole catalog that it relies on, lists the packs that were added since, and has the catalog's files that were written since. So a reader
// needs the newest commit and one whole catalog. Keys of commits count down, so that a listing begins with the newest one.
//
// The writer that makes commit n+1 first changes the archive. Another writer that has read commit n gets ErrConflict, reads again, and uploads its packs anew. A
// commit's object is never removed, so a suspended writer cannot make a number a second time. Obsolete commits are replaced by empty objects.
//
// Package durable reads the archive through FS, as a store whose files these objects are.
package bucket

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"velocpy/gocore/base/wire"
)

var (
	// ErrConflict: another writer has made the commit that this one was about to make, or has collected what this one has uploaded for it.
	ErrConflict = errors.New("another process has changed the archive meanwhile")
	// ErrForeign: there are objects under the prefix, and none of them is an archive's identity.
	ErrForeign = errors.New("there are objects of others, and no archive")
	// ErrNone: there is nothing under the prefix.
	ErrNone = errors.New("no archive")
	// ErrDamaged: an object of the archive is missing, or has other bytes than were written.
	ErrDamaged = errors.New("the archive is damaged")
	// ErrVersion: a later version has written the archive.
	ErrVersion = errors.New("a later version has written the archive")
	// ErrPlace: the text names no bucket.
	ErrPlace = errors.New("give s3://bucket/prefix, with a prefix of its own for each archive")
	// ErrNoProgram: the program that talks to object stores does not run.
	ErrNoProgram = errors.New("the program velocpy-s3 does not run")
	// ErrFull: no number is left for a pack.
	ErrFull = errors.New("the archive has as many packs as it can")

	errAbsent = errors.New("there is no such object")
	errExists = errors.New("there is such an object already")
)

// scheme is how the place of a bucket begins.
const scheme = "s3://"

// IsPlace tells whether a path is the place of an archive in a bucket.
func IsPlace(path string) bool { return strings.HasPrefix(path, scheme) }

// Server carries out requests. into is where bytes of an object go.
type Server interface {
	Ask(q *wire.Request, body, into []byte) (r wire.Reply, n int, err error)
}

// Costs are the requests that were sent to a server, and the bytes of their bodies.
type Costs struct {
	Requests int64 `json:"requests"`
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"`
}

// Add returns the sum of two.
func (c Costs) Add(o Costs) Costs {
	return Costs{c.Requests + o.Requests, c.Sent + o.Sent, c.Received + o.Received}
}

// Bucket is a place in an object store. Its methods are safe for concurrent use.
type Bucket struct {
	server                   Server
	name, prefix             string
	memo                     *memo // nil: nothing is kept
	requests, sent, received atomic.Int64
}

// At returns the place that s3://bucket/prefix names.
func At(server Server, place string) (*Bucket, error) {
	name, prefix, _ := strings.Cut(strings.TrimPrefix(place, scheme), "/")
	prefix = strings.Trim(prefix, "/")
	if !IsPlace(place) || name == "" || prefix == "" || strings.Contains(prefix, "//") {
		return nil, fmt.Errorf("%q: %w", place, ErrPlace)
	}
	return &Bucket{server: server, name: name, prefix: prefix + "/"}, nil
}

// Place is the text that names the place.
func (b *Bucket) Place() string { return scheme + b.name + "/" + strings.TrimSuffix(b.prefix, "/") }

// Costs returns the requests of this Bucket so far.
func (b *Bucket) Costs() Costs { return Costs{b.requests.Load(), b.sent.Load(), b.received.Load()} }

// mostSends is how often bytes are sent that the server has not got as they are.
const mostSends = 3

// ask sends a request, and returns how many bytes have come.
func (b *Bucket) ask(q wire.Request, body, into []byte) (r wire.Reply, n int, err error) {
	return b.askBy(b.server, q, body, into)
}

// askBy is ask by a server that reaches the same objects.
func (b *Bucket) askBy(server Server, q wire.Request, body, into []byte) (r wire.Reply, n int, err error) {
	q.Bucket = b.name
	for range mostSends {
		r, n, err = server.Ask(&q, body, into)
		b.requests.Add(r.Requests)
		b.sent.Add(r.Sent)
		b.received.Add(r.Received)
		if err != nil || r.Why != wire.Altered {
			break
		}
	}
	if err == nil && r.Why != "" {
		err = b.failure(q.Key, &r)
	}
	return r, n, err
}

// failure is the error of a request. Its errno says what kind of failure it is.
func (b *Bucket) failure(key string, r *wire.Reply) error {
	where := scheme + b.name + "/" + key
	switch r.Why {
	case wire.Exists:
		return fmt.Errorf("%s: %w", where, errExists)
	case wire.Absent:
		return fmt.Errorf("%s: %w: %w", where, errAbsent, unix.ENOENT)
	case wire.NoBucket:
		return fmt.Errorf("there is no bucket %q: %w", b.name, unix.ENODEV)
	case wire.Denied:
		return fmt.Errorf("%s: the credentials are missing or wrong, or do not allow it (%s): %w", where, r.Text, unix.EACCES)
	case wire.Unreachable:
		return fmt.Errorf("%s: %s: %w", where, r.Text, unix.ETIMEDOUT)
	case wire.Altered:
		return fmt.Errorf("%s: the server has got other bytes than were sent, several times (%s): %w", where, r.Text, unix.ECOMM)
	}
	return fmt.Errorf("%s: %s: %w", where, r.Text, unix.EPROTO)
}

// get reads bytes of an object; fewer at its end.
func (b *Bucket) get(key string, from int64, p []byte) (int, error) {
	_, n, err := b.ask(wire.Request{Op: wire.Get, Key: b.prefix + key, From: from, Bytes: int64(len(p))}, nil, p)
	return n, err
}

// put makes an object. With fresh it fails with errExists where there is one already.
func (b *Bucket) put(key string, body []byte, fresh bool) error {
	_, _, err := b.ask(wire.Request{Op: wire.Put, Key: b.prefix + key, New: fresh, Sum: sumOf(body)}, body, nil)
	return err
}

// list returns objects whose keys begin so, in the order of their keys. The keys are those below the prefix.
func (b *Bucket) list(beginning, after string, most int) (objects []wire.Object, more bool, err error) {
	q := wire.Request{Op: wire.List, Prefix: b.prefix + beginning, Most: most}
	if after != "" {
		q.After = b.prefix + after
	}
	r, _, err := b.ask(q, nil, nil)
	return b.below(r.Objects), r.More, err
}

// below cuts the prefix off keys.
func (b *Bucket) below(objects []wire.Object) []wire.Object {
	for i := range objects {
		objects[i].Key = strings.TrimPrefix(objects[i].Key, b.prefix)
	}
	return objects
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is the checksum of a body that the server compares it with.
func sumOf(body []byte) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.Checksum(body, castagnoli)))
}
