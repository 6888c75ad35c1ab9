package bucket_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

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
	if err := b.Upload(first, 1, filled(content)); !errors.Is(err, unix.ECONNRESET) {
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
	if err := b.Upload(again, senders, filled(content)); err != nil {
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
		if err := b.Upload(first, 1, filled(content)); err == nil {
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
		if err := b.Upload(again, 1, filled(content)); err != nil || again.ID == first.ID || server.Uploads() != 1 {
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
	if err := b.Upload(planned(t, image, length, 7), 1, filled(content)); !errors.Is(err, bucket.ErrConflict) {
		t.Fatalf("the error is %v", err)
	}
}

// An upload whose bytes cannot be had is given up.
func TestAnUploadThatCannotBeFilled(t *testing.T) {
	server, b, image, _ := started(t, part+10)
	broken := errors.New("cannot be read")
	fills := 0
	err := b.Upload(planned(t, image, part+10, 7), 2, func([]byte) error {
		if fills++; fills == 2 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || server.Uploads() != 0 {
		t.Fatalf("%v, and %d uploads are left", err, server.Uploads())
	}
}
