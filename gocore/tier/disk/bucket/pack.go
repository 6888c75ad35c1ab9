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

// Upload uploads a pack. fill is called with one buffer after another, and fills them with the pack's bytes in their order. Buffers are sent by so many
// goroutines. After an error, nothing of it is in the archive. It fails with ErrConflict if another process has collected the parts.
//
// If a process has sent parts of a pack with this content, and has died or failed then, Upload goes on with them: the pack gets the ID of that one. A part is sent again
// unless the server has one of the same length and checksum.
func (b *Bucket) Upload(x *Pack, senders int, fill func(p []byte) error) error {
	length := int64(partBytes)
	for length*mostParts < x.Bytes {
		length *= 2
	}
	u := &upload{at: b, key: x.key()}
	if x.Bytes <= length {
		return u.once(x.Bytes, fill)
	}
	err := u.inParts(x, length, senders, fill)
	if errors.Is(err, errAbsent) {
		err = fmt.Errorf("%w: %w", ErrConflict, err) // the other process has made a commit before
	}
	return err
}

// upload is an object that is being uploaded.
type upload struct {
	at     *Bucket
	key    string
	number string           // that the server has given it
	sent   map[int]wire.Tag // parts that another process has sent, by their numbers

	mu     sync.Mutex
	tags   []wire.Tag
	err    error
	unfull bool // a buffer could not be filled
}

// once uploads an object by one request.
func (u *upload) once(bytes int64, fill func(p []byte) error) (err error) {
	if bytes == 0 {
		return u.at.put(u.key, nil, false)
	}
	m, err := memory.Map(partPurpose, bytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Unmap()) }()
	p := m.Bytes(0, bytes)
	if err := fill(p); err != nil {
		return err
	}
	return u.at.put(u.key, p, false)
}

// inParts uploads an object in parts.
func (u *upload) inParts(x *Pack, length int64, senders int, fill func(p []byte) error) error {
	if err := u.resumeOrBegin(x); err != nil {
		return err
	}
	bytes := x.Bytes
	if err := u.parts(bytes, length, senders, fill); err != nil {
		return u.abortIfUnfull(err)
	}
	slices.SortFunc(u.tags, func(a, b wire.Tag) int { return cmp.Compare(a.Number, b.Number) })
	_, _, err := u.at.ask(wire.Request{Op: wire.Complete, Key: u.at.prefix + u.key, Upload: u.number, Parts: u.tags}, nil, nil)
	if err != nil && u.there(bytes) {
		return nil // the reply was lost
	}
	return err
}

// resumeOrBegin goes on with an upload of the same content, or begins one. It also begins one where uploads cannot be listed: credentials may not allow that.
func (u *upload) resumeOrBegin(x *Pack) error {
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

// abortIfUnfull aborts an upload whose bytes could not be read: another attempt would read them anew. The parts of any other one stay on the server for the next push.
func (u *upload) abortIfUnfull(err error) error {
	if !u.unfull {
		return fmt.Errorf("%w (the parts that have arrived stay for the next push)", err)
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
	number int
	bytes  []byte
	buffer *buffer
}

// parts fills one buffer after another, while others are sent.
func (u *upload) parts(bytes, length int64, senders int, fill func(p []byte) error) (err error) {
	count := int((bytes + length - 1) / length)
	senders = min(senders, count)
	free, full := make(chan *buffer, senders+1), make(chan part)
	var all []*buffer
	defer func() {
		for _, m := range all {
			err = errors.Join(err, m.close())
		}
	}()
	for range senders + 1 {
		m, err := u.at.buffer(length)
		if err != nil {
			return err
		}
		all = append(all, m)
		free <- m
	}
	var busy sync.WaitGroup
	for range senders {
		busy.Add(1)
		safego.Go("bucket sender", func() {
			defer busy.Done()
			for x := range full {
				if err := u.send(x); err != nil {
					u.fail(err)
				}
				free <- x.buffer
			}
		})
	}
	for number := 1; number <= count && u.failed() == nil; number++ {
		m := <-free
		p := m.bytes(min(length, bytes-int64(number-1)*length))
		if err := fill(p); err != nil {
			u.unfull = true
			u.fail(err)
			break
		}
		full <- part{number, p, m}
	}
	close(full)
	busy.Wait()
	return u.failed()
}

// send sends a part. It turns a panic into an error, because the filling goroutine waits for the buffer.
func (u *upload) send(x part) (err error) {
	defer safego.Guard("bucket sender", &err)
	if u.failed() != nil {
		return nil
	}
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

func (u *upload) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil {
		u.err = err
	}
}

func (u *upload) failed() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}
