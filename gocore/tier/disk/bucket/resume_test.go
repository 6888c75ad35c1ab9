package bucket_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/safego"
	"velocpy/gocore/base/wire"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/bucket/buckettest"
	"velocpy/gocore/tier/disk/segment"
)

// filled fills buffers with some bytes, in their order.
func filled(p []byte) func([]byte) error {
	return func(to []byte) error {
		copy(to, p)
		p = p[len(to):]
		return nil
	}
}

const part = 16 << 20

// started is an empty archive, a pack of it that is planned, and its bytes.
func started(t fataler, bytes int64) (server *buckettest.Double, b *bucket.Bucket, image *bucket.Image, content []byte) {
	server = buckettest.New()
	b = at(t, server)
	if err := b.Make(identity); err != nil {
		t.Fatal(err)
	}
	image, err := b.Read()
	if err != nil {
		t.Fatal(err)
	}
	content = make([]byte, bytes)
	for i := 0; i < len(content); i += 1000 {
		content[i] = byte(rand.IntN(256))
	}
	return server, b, image, content
}

func planned(t fataler, image *bucket.Image, bytes int64, content uint64) *bucket.Pack {
	all, err := image.Plan(bucket.Draft{Bytes: bytes, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// committed commits a pack, and compares what a reader finds in it.
func committed(t fataler, server bucket.Server, image *bucket.Image, x *bucket.Pack, want []byte) {
	if _, err := image.Commit(&bucket.Change{Record: []byte("record"), Packs: []*bucket.Pack{x}}); err != nil {
		t.Fatal(err)
	}
	now, _ := read(t, server)
	file, err := now.FS().Open(segment.FileName(1), false, false)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if n, err := file.ReadAt(got, 0); n < len(got) || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, or others: %v", n, err)
	}
}

// A push sends what an earlier one has not sent, whichever parts of that have arrived. What differs is sent again.
func TestAnUploadIsResumed(t *testing.T) {
	for count := 2; count <= 4; count++ {
		for fails := 1; fails <= count+1; fails++ { // the last of these is the request that makes the object
			for senders := 1; senders <= 2; senders++ {
				resume(t, count, fails, senders, (fails+senders)%2 == 0)
			}
		}
	}
}

func resume(t *testing.T, count, fails, senders int, changed bool) {
	length := int64(count-1)*part + 1 + rand.Int64N(100)
	server, b, image, content := started(t, length)
	seen, resumed := 0, false
	server.Before = func(q *wire.Request) error {
		if q.Op == wire.Part {
			seen++
		}
		if !resumed && (seen == fails && q.Op == wire.Part || fails > count && q.Op == wire.Complete) {
			return fmt.Errorf("cut: %w", unix.ECONNRESET)
		}
		return nil
	}
	first := planned(t, image, length, 7)
	if err := b.Upload(1, bucket.Filling{Pack: first, Fill: filled(content)}); !errors.Is(err, unix.ECONNRESET) {
		t.Fatal(err)
	}
	if server.Uploads() != 1 {
		t.Fatalf("%d uploads are left", server.Uploads())
	}
	want := count - min(fails-1, count)
	if resumed, seen = true, 0; changed {
		content[0]++
		if want < count {
			want++
		}
	}
	again := planned(t, image, length, 7)
	if err := b.Upload(senders, bucket.Filling{Pack: again, Fill: filled(content)}); err != nil {
		t.Fatal(err)
	}
	if again.ID != first.ID || seen != want || server.Uploads() != 0 {
		t.Fatalf("%d of %d parts were sent, and not %d; %d uploads are left", seen, count, want, server.Uploads())
	}
	committed(t, server, image, again, content)
}

// An upload of another content, or for another commit, is left alone. So is one whose parts cannot be listed.
func TestOtherUploadsAreNotResumed(t *testing.T) {
	const length = part + 10
	for _, what := range []string{"another content", "another commit", "ended", "not listed"} {
		server, b, image, content := started(t, length)
		server.Before = func(q *wire.Request) error {
			if q.Op == wire.Complete {
				return fmt.Errorf("cut: %w", unix.ECONNRESET)
			}
			return nil
		}
		first := planned(t, image, length, 7)
		if err := b.Upload(1, bucket.Filling{Pack: first, Fill: filled(content)}); err == nil {
			t.Fatal("it does not fail")
		}
		server.Before = func(q *wire.Request) error {
			if what == "not listed" && q.Op == wire.Uploads {
				return fmt.Errorf("denied: %w", unix.EACCES)
			}
			return nil
		}
		server.After = func(q *wire.Request, r *wire.Reply) error {
			if what == "ended" && q.Op == wire.Parts {
				r.Why = wire.Absent
			}
			return nil
		}
		number := uint64(7)
		switch what {
		case "another content":
			number = 8
		case "another commit":
			next, err := image.Commit(&bucket.Change{Record: []byte("other")})
			if err != nil {
				t.Fatal(err)
			}
			image = next
		}
		again := planned(t, image, length, number)
		if err := b.Upload(1, bucket.Filling{Pack: again, Fill: filled(content)}); err != nil || again.ID == first.ID || server.Uploads() != 1 {
			t.Fatalf("%s: %d uploads are left: %v", what, server.Uploads(), err)
		}
		committed(t, server, image, again, content)
	}
}

// Where another process sends other bytes into the same upload, the pack is not made, and the caller begins again.
func TestAnotherProcessSendsOtherBytes(t *testing.T) {
	const length = part + 10
	server, b, image, content := started(t, length)
	server.Before = func(q *wire.Request) error {
		if q.Op == wire.Complete {
			q.Parts[0].Sum = "AAAAAA=="
		}
		return nil
	}
	if err := b.Upload(1, bucket.Filling{Pack: planned(t, image, length, 7), Fill: filled(content)}); !errors.Is(err, bucket.ErrConflict) {
		t.Fatalf("the error is %v", err)
	}
}

// An upload whose bytes cannot be had is given up.
func TestAnUploadThatCannotBeFilled(t *testing.T) {
	server, b, image, _ := started(t, part+10)
	broken := errors.New("cannot be read")
	fills := 0
	err := b.Upload(2, bucket.Filling{Pack: planned(t, image, part+10, 7), Fill: func([]byte) error {
		if fills++; fills == 2 {
			return broken
		}
		return nil
	}})
	if !errors.Is(err, broken) || server.Uploads() != 0 {
		t.Fatalf("%v, and %d uploads are left", err, server.Uploads())
	}
}

// Several packs of any lengths are uploaded by one call. Whichever request fails, a second call uploads them, and no upload is left.
func TestSeveralPacks(t *testing.T) {
	lengths := []int64{part + 1, 0, 5, 2*part + 9, part}
	const requests = 10 // parts, whole packs and completions
	for _, senders := range []int{1, 3} {
		for fails := range requests + 1 { // 0: none does
			server, b, image, content := started(t, 3*part)
			failing, seen := true, 0
			server.Before = func(q *wire.Request) error {
				if q.Op == wire.Part || q.Op == wire.Put || q.Op == wire.Complete {
					if seen++; failing && seen == fails {
						return fmt.Errorf("cut: %w", unix.ECONNRESET)
					}
				}
				return nil
			}
			upload := func() (packs []*bucket.Pack, err error) {
				var drafts []bucket.Draft
				for k, n := range lengths {
					drafts = append(drafts, bucket.Draft{Bytes: n, Content: uint64(k + 1)})
				}
				packs, err = image.Plan(drafts...)
				if err != nil {
					t.Fatal(err)
				}
				var all []bucket.Filling
				for k, x := range packs {
					all = append(all, bucket.Filling{Pack: x, Fill: filled(content[k:][:x.Bytes])})
				}
				return packs, b.Upload(senders, all...)
			}
			packs, err := upload()
			if failed := fails > 0; errors.Is(err, unix.ECONNRESET) != failed || err != nil && !failed {
				t.Fatalf("request %d of %d: %v", fails, seen, err)
			}
			if failing = false; err != nil {
				if packs, err = upload(); err != nil {
					t.Fatal(err)
				}
			} else if seen != requests {
				t.Fatalf("there were %d requests, and not %d", seen, requests)
			}
			if server.Uploads() != 0 {
				t.Fatalf("%d uploads are left", server.Uploads())
			}
			if _, err := image.Commit(&bucket.Change{Record: []byte("record"), Packs: packs}); err != nil {
				t.Fatal(err)
			}
			now, _ := read(t, server)
			for k, n := range lengths {
				file, err := now.FS().Open(segment.FileName(uint64(k+1)), false, false)
				if err != nil {
					t.Fatal(err)
				}
				got := make([]byte, n)
				if come, _ := file.ReadAt(got, 0); int64(come) != n || !bytes.Equal(got, content[k:][:n]) {
					t.Fatalf("pack %d has %d bytes, or others", k, come)
				}
			}
		}
	}
}

// slowServer takes requests of several callers at once.
type slowServer struct {
	bucket.Server
	before func(q *wire.Request)
}

func (s slowServer) Ask(q *wire.Request, body, into []byte) (wire.Reply, int, error) {
	s.before(q)
	return s.Server.Ask(q, body, into)
}

// A panic while a buffer is filled is an error, and no sender uses a buffer that is gone.
func TestAPanicWhileABufferIsFilled(t *testing.T) {
	_, b, image, content := started(t, 3*part)
	fill, fills := filled(content), 0
	err := b.Upload(2, bucket.Filling{Pack: planned(t, image, 3*part, 1), Fill: func(p []byte) error {
		if fills++; fills == 3 {
			panic("of the test")
		}
		return fill(p)
	}})
	if !errors.Is(err, safego.ErrPoisoned) {
		t.Fatal(err)
	}
}

// The parts of a pack are sent while the server puts those of the one before together.
func TestPacksAreCompletedBesideOthers(t *testing.T) {
	server, _, image, content := started(t, 4*part)
	packs, err := image.Plan(bucket.Draft{Bytes: 2 * part, Content: 1}, bucket.Draft{Bytes: 2 * part, Content: 2})
	if err != nil {
		t.Fatal(err)
	}
	second, once := make(chan struct{}), sync.Once{}
	b := at(t, slowServer{server, func(q *wire.Request) {
		switch {
		case q.Op == wire.Part && strings.HasSuffix(q.Key, packs[1].ID.String()):
			once.Do(func() { close(second) })
		case q.Op == wire.Complete:
			select {
			case <-second:
			case <-time.After(10 * time.Second):
				t.Error("nothing of the second pack has come")
			}
		}
	}})
	err = b.Upload(2, bucket.Filling{Pack: packs[0], Fill: filled(content[:2*part])}, bucket.Filling{Pack: packs[1], Fill: filled(content[2*part:])})
	if err != nil {
		t.Fatal(err)
	}
}
