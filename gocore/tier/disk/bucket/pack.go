package bucket

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/wire"
)

// Offset is where the bytes of the next pack begin in the space of the archive. Those of each pack behind it begin SegmentBytes later.
func (i *Image) Offset() int64 { return int64(i.lastPack()) * SegmentBytes }

func (i *Image) lastPack() uint64 {
	if n := len(i.packs); n > 0 {
		return i.packs[n-1].Number
	}
	return 0
}

// Draft is what a pack is planned by. Packs with different bytes have different numbers in Content, as far as possible.
type Draft struct {
	Bytes   int64
	Content uint64
}

// Plan plans the next packs for the next commit. Other processes may upload them.
func (i *Image) Plan(drafts ...Draft) (all []*Pack, err error) {
	last := i.lastPack()
	if last+uint64(len(drafts)) > mostPacks {
		return nil, fmt.Errorf("%s: %w", i.at.Place(), ErrFull)
	}
	for k, d := range drafts {
		x := &Pack{Number: last + 1 + uint64(k), Commit: i.number + 1, Bytes: d.Bytes}
		if x.ID, err = draw(); err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint64(x.ID[:], d.Content)
		all = append(all, x)
	}
	return all, nil
}

// Parts of an upload. The last one is shorter. An object store takes at most mostParts of them.
const (
	partBytes   = 16 << 20
	mostParts   = 10000
	partPurpose = "upload buffers"
)

// File is the number of the data file, from 0 on, that the pack is in the space of the archive.
func (x *Pack) File() int64 { return int64(x.Number) - 1 }

// Offset is where the bytes of the pack begin in that space.
func (x *Pack) Offset() int64 { return x.File() * SegmentBytes }

// Filling is a pack that is uploaded. Fill is called with one buffer after another, and fills them with the pack's bytes in their order.
type Filling struct {
	Pack *Pack
	Fill func(p []byte) error
}

// Upload uploads packs, whose buffers are filled one after the other, and sent by so many goroutines. After an error, nothing of them is in the archive. It fails with
// ErrConflict if another process has collected parts.
//
// A pack is complete when the server has put its parts together, which takes a while. Meanwhile the parts of the next ones are sent.
//
// If a process has sent parts of a pack with this content, and has died or failed before the pack was complete, Upload goes on with them: the pack gets the ID of that one.
// A part is sent again unless the server has one of the same length and checksum.
func (b *Bucket) Upload(senders int, packs ...Filling) error {
	err := b.upload(senders, packs)
	if errors.Is(err, errAbsent) {
		err = fmt.Errorf("%w: %w", ErrConflict, err) // the other process has made a commit before
	}
	return err
}

// partLength is the length of the parts of a pack.
func partLength(bytes int64) int64 {
	length := int64(partBytes)
	for length*mostParts < bytes {
		length *= 2
	}
	return length
}

func (b *Bucket) upload(senders int, packs []Filling) (err error) {
	if len(packs) == 0 {
		return nil
	}
	var uploads []*upload
	longest, parts := int64(1), 0
	for _, x := range packs {
		u := newUpload(b, x)
		uploads = append(uploads, u)
		longest, parts = max(longest, min(u.length, x.Pack.Bytes)), parts+u.count()
	}
	s := &sending{at: b, full: make(chan part)}
	defer func() { err = errors.Join(err, s.closeBuffers()) }()
	if err := s.makeBuffers(min(senders, parts)+1, longest); err != nil {
		return err
	}
	s.start(min(senders, parts))
	var unfilled *upload
	for _, u := range uploads {
		full, err := s.fill(u)
		if s.fail(err); s.failed() != nil {
			if !full {
				unfilled = u
			}
			break
		}
	}
	close(s.full)
	s.busy.Wait()
	if unfilled != nil {
		return unfilled.abort(s.failed())
	}
	return s.failed()
}

// upload is a pack that is being uploaded.
type upload struct {
	at     *Bucket
	pack   Filling
	key    string
	length int64            // of a part
	number string           // that the server has given it; empty: it is sent by one request
	sent   map[int]wire.Tag // parts that another process has sent, by their numbers

	mu   sync.Mutex
	tags []wire.Tag
	left int // parts that have not been sent
}

func newUpload(b *Bucket, x Filling) *upload {
	u := &upload{at: b, pack: x, key: x.Pack.key(), length: partLength(x.Pack.Bytes)}
	u.left = u.count()
	return u
}

// count is the number of parts. An empty pack has one, too.
func (u *upload) count() int { return max(1, int((u.pack.Pack.Bytes+u.length-1)/u.length)) }

// whole tells whether one request sends the pack.
func (u *upload) whole() bool { return u.count() == 1 }

// send sends a part, and behind the last one has the server put the parts together.
func (u *upload) send(x part) error {
	if u.whole() {
		_, _, err := u.at.askBy(x.buffer.server, wire.Request{Op: wire.Put, Key: u.at.prefix + u.key, Sum: sumOf(x.bytes)}, x.bytes, nil)
		return err
	}
	if err := u.sendPart(x); err != nil {
		return err
	}
	u.mu.Lock()
	u.left--
	last := u.left == 0
	u.mu.Unlock()
	if last {
		return u.complete()
	}
	return nil
}

// explain says what is left of an upload that has failed.
func (u *upload) explain(err error) error {
	if u.whole() {
		return err
	}
	return fmt.Errorf("%w (the parts that have arrived stay for the next push)", err)
}

// complete has the server put the parts together.
func (u *upload) complete() error {
	slices.SortFunc(u.tags, func(a, b wire.Tag) int { return cmp.Compare(a.Number, b.Number) })
	_, _, err := u.at.ask(wire.Request{Op: wire.Complete, Key: u.at.prefix + u.key, Upload: u.number, Parts: u.tags}, nil, nil)
	if err != nil && u.there(u.pack.Pack.Bytes) {
		return nil // the reply was lost
	}
	return err
}

// resumeOrBegin goes on with an upload of the same content, or begins one. It also begins one where uploads cannot be listed: credentials may not allow that.
func (u *upload) resumeOrBegin() error {
	x := u.pack.Pack
	r, _, err := u.at.ask(wire.Request{Op: wire.Uploads, Prefix: u.at.prefix + x.alike()}, nil, nil)
	if err == nil {
		for _, left := range u.at.below(r.Objects) {
			id, isPack := idOf(left.Key)
			if !isPack || u.listParts(left) != nil {
				continue // it has ended meanwhile
			}
			x.ID, u.key, u.number = id, left.Key, left.Upload
			return nil
		}
	}
	u.sent = nil
	r, _, err = u.at.ask(wire.Request{Op: wire.Begin, Key: u.at.prefix + u.key}, nil, nil)
	u.number = r.Upload
	return err
}

// listParts asks the server which parts of an upload it has.
func (u *upload) listParts(left wire.Object) error {
	u.sent = map[int]wire.Tag{}
	for last, more := 0, true; more; {
		r, _, err := u.at.ask(wire.Request{Op: wire.Parts, Key: u.at.prefix + left.Key, Upload: left.Upload, Number: last}, nil, nil)
		if err != nil {
			return err
		}
		for _, tag := range r.Tags {
			u.sent[tag.Number], last = tag, tag.Number
		}
		more = r.More && len(r.Tags) > 0
	}
	return nil
}

// abort ends an upload whose bytes could not be read: another attempt would read them anew.
func (u *upload) abort(err error) error {
	if u.number == "" {
		return err
	}
	_, _, failed := u.at.ask(wire.Request{Op: wire.Abort, Key: u.at.prefix + u.key, Upload: u.number}, nil, nil)
	if failed != nil {
		err = fmt.Errorf("%w (its parts stay until the next push: %w)", err, failed)
	}
	return err
}

// there tells whether the object is there with its length.
func (u *upload) there(bytes int64) bool {
	found, _, err := u.at.list(u.key, "", 1)
	return err == nil && len(found) == 1 && found[0].Key == u.key && found[0].Bytes == bytes
}

// buffer has the bytes of a part. A connection lends its memory, which the program sends from as it is; where none does, the buffer has memory of its own.
type buffer struct {
	mapping *memory.Mapping // nil: the memory is lent
	loan    *loan
	server  Server // that sends the part
}

func (b *Bucket) buffer(length int64) (*buffer, error) {
	if lender, ok := b.server.(*Connections); ok {
		if x := lender.lend(length); x != nil {
			return &buffer{loan: x, server: x}, nil
		}
	}
	m, err := memory.Map(partPurpose, length)
	return &buffer{mapping: m, server: b.server}, err
}

func (x *buffer) bytes(n int64) []byte {
	if x.mapping == nil {
		return x.loan.bytes(n)
	}
	return x.mapping.Bytes(0, n)
}

func (x *buffer) close() error {
	if x.mapping == nil {
		x.loan.end()
		return nil
	}
	return x.mapping.Unmap()
}

// part is a buffer on its way to the server.
type part struct {
	of     *upload
	number int
	bytes  []byte
	buffer *buffer
}

// sending is the buffers and goroutines of uploads that follow each other.
type sending struct {
	at   *Bucket
	all  []*buffer
	free chan *buffer
	full chan part
	busy sync.WaitGroup

	mu  sync.Mutex
	err error
}

func (s *sending) makeBuffers(count int, length int64) error {
	s.free = make(chan *buffer, count)
	for range count {
		m, err := s.at.buffer(length)
		if err != nil {
			return err
		}
		s.all = append(s.all, m)
		s.free <- m
	}
	return nil
}

func (s *sending) closeBuffers() (err error) {
	for _, m := range s.all {
		err = errors.Join(err, m.close())
	}
	return err
}

// start starts goroutines that send parts.
func (s *sending) start(senders int) {
	for range senders {
		s.busy.Add(1)
		safego.Go("bucket sender", func() {
			defer s.busy.Done()
			for x := range s.full {
				if err := s.send(x); err != nil {
					s.fail(x.of.explain(err))
				}
				s.free <- x.buffer
			}
		})
	}
}

// send sends a part. It turns a panic into an error, because the filling goroutine waits for the buffer.
func (s *sending) send(x part) (err error) {
	defer safego.Guard("bucket sender", &err)
	if s.failed() != nil {
		return nil
	}
	return x.of.send(x)
}

// fill fills one buffer after another with the bytes of a pack, while others are sent. full is false if a buffer could not be filled. A panic is an error, because the
// senders still use the buffers.
func (s *sending) fill(u *upload) (full bool, err error) {
	defer safego.Guard("bucket filling", &err)
	if !u.whole() {
		if err := u.resumeOrBegin(); err != nil {
			return true, err
		}
	}
	bytes := u.pack.Pack.Bytes
	for number := 1; number <= u.count() && s.failed() == nil; number++ {
		m := <-s.free
		p := m.bytes(min(u.length, bytes-int64(number-1)*u.length))
		if err := u.pack.Fill(p); err != nil {
			return false, err
		}
		s.full <- part{u, number, p, m}
	}
	return true, nil
}

func (s *sending) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *sending) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// sendPart sends a part, unless the server has it.
func (u *upload) sendPart(x part) error {
	q := wire.Request{Op: wire.Part, Key: u.at.prefix + u.key, Upload: u.number, Number: x.number, Sum: sumOf(x.bytes)}
	tag, sent := u.sent[x.number]
	if !sent || tag.Sum != q.Sum || tag.Bytes != int64(len(x.bytes)) {
		r, _, err := u.at.askBy(x.buffer.server, q, x.bytes, nil)
		if err != nil {
			return err
		}
		tag = r.Tag
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tags = append(u.tags, tag)
	return nil
}
