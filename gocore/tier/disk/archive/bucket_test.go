package archive

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/base/wire"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/bucket/buckettest"
)

func inBucket(t fataler, server bucket.Server) *bucket.Bucket {
	b, err := bucket.At(server, "s3://bucket/run")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func pushToBucket(at *bucket.Bucket, from []Source, o Options) (Done, error) {
	p, err := NewBucketPush(from, at, o)
	if err != nil {
		return Done{}, err
	}
	_, err = p.Step(func() bool { return false })
	return p.Done(), errors.Join(err, p.Close())
}

// bucketContents is contents of an archive in a bucket; nothing if there is none.
func bucketContents(server bucket.Server, t fataler) (archived, error) {
	image, err := inBucket(t, server).Read()
	if errors.Is(err, bucket.ErrNone) {
		return archived{}, nil
	}
	if err != nil {
		return nil, err
	}
	view, err := ViewBucket(image)
	if err != nil {
		return nil, err
	}
	defer func() { _ = view.Close() }()
	if err := view.Fit(); err != nil {
		return nil, err
	}
	return contentsOf(view)
}

// change draws what ranks do between two pushes.
func change(t *rapid.T, r *run, version int) {
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		rank := rapid.IntRange(0, len(r.has)-1).Draw(t, "rank")
		at := place{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "history"), model.NumberKey(rapid.Int64Range(0, 2).Draw(t, "key"))}
		if _, has := r.has[rank][at]; has && rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
			r.drop(rank, at)
			continue
		}
		r.put(rank, at, state{rank, version, rapid.Int64Range(0, 20000).Draw(t, "bytes")})
		version++
	}
}

// TestABucketHasWhatADirectoryHas: of the same pushes, and with what is collected between them, an archive in a bucket and one in a directory have the same.
func TestABucketHasWhatADirectoryHas(t *testing.T) {
	few(t, "60")
	rapid.Check(t, func(t *rapid.T) {
		r, server := newRun(t, rapid.IntRange(1, 3).Draw(t, "ranks")), buckettest.New()
		for push := range rapid.IntRange(1, 4).Draw(t, "pushes") {
			change(t, r, push*10)
			o := Options{Partial: rapid.Bool().Draw(t, "partial"), packBytes: drawPackBytes(t)}
			from := r.all()
			if fewer := rapid.IntRange(1, len(from)).Draw(t, "of"); fewer < len(from) {
				from = from[:fewer]
			}
			there, err := pushToBucket(inBucket(t, server), from, o)
			if err != nil {
				t.Fatal(err)
			}
			here, err := pushTo(r.shared, from, o)
			if err != nil {
				t.Fatal(err)
			}
			if there.Keys != here.Keys || there.Parts != here.Parts || there.Known != here.Known || there.Incomplete != here.Incomplete {
				t.Fatalf("into the bucket %+v, into the directory %+v", there, here)
			}
			if rapid.IntRange(0, 2).Draw(t, "collect") == 0 {
				if _, err := CollectBucket(inBucket(t, server), 0, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, err := bucketContents(server, t)
		if err != nil {
			t.Fatal(err)
		}
		want, err := contents(r.shared)
		if err != nil {
			t.Fatal(err)
		}
		if !sameContents(got, want) {
			t.Fatalf("the bucket has\n%v\nand the directory\n%v", got, want)
		}
	})
}

// cutting lets request n fail, or all from it on, before the server has carried it out or after. It returns how many have come.
func cutting(server *buckettest.Double, n int, after, ever bool) *int {
	count := new(int)
	fault := func() error {
		if *count++; *count-1 == n || ever && *count-1 > n {
			return fmt.Errorf("cut: %w", unix.ECONNRESET)
		}
		return nil
	}
	if after {
		server.After = func(*wire.Request, *wire.Reply) error { return fault() }
	} else {
		server.Before = func(*wire.Request) error { return fault() }
	}
	return count
}

// TestABucketIsOldOrNew: one request of a push fails, or all from one on, before the server has carried it out or after. Each key is there as a whole, in its old
// version or in the new one, and the next push brings the rest.
func TestABucketIsOldOrNew(t *testing.T) {
	points := 0
	for mode := range 4 {
		after, ever := mode&1 > 0, mode&2 > 0
		for n := 0; ; n++ {
			points++
			r, server := newRun(t, 2), buckettest.New()
			keys := []place{{"a", model.NumberKey(1)}, {"a", model.NumberKey(2)}, {"b", model.TextKey("x")}}
			for _, at := range keys {
				for rank := range 2 {
					r.put(rank, at, state{rank, 1, 5000})
				}
			}
			if _, err := pushToBucket(inBucket(t, server), r.all(), Options{}); err != nil {
				t.Fatal(err)
			}
			before := r.complete(nil)
			for rank := range 2 {
				r.put(rank, keys[0], state{rank, 2, 9000})
				r.put(rank, place{"c", model.NumberKey(0)}, state{rank, 1, 100})
			}
			want := r.complete(before)
			count := cutting(server, n, after, ever)
			done, err := pushToBucket(inBucket(t, server), r.all(), Options{})
			server.Before, server.After = nil, nil
			got, bad := bucketContents(server, t)
			if bad != nil {
				t.Fatal(bad)
			}
			if !sameContents(got, before) && !sameContents(got, want) || err == nil && (!sameContents(got, want) || done.Keys != 2) {
				t.Fatalf("request %d (after %v, ever %v): %+v, %v, and there is\n%v", n, after, ever, done, err, got)
			}
			if _, err := pushToBucket(inBucket(t, server), r.all(), Options{}); err != nil {
				t.Fatal(err)
			}
			if got, err := bucketContents(server, t); err != nil || !sameContents(got, want) {
				t.Fatalf("request %d (after %v, ever %v), and another push: %v, %v", n, after, ever, got, err)
			}
			if _, err := CollectBucket(inBucket(t, server), 0, false); err != nil {
				t.Fatal(err)
			}
			if packs := packsIn(server); packs != 2 {
				t.Fatalf("request %d (after %v, ever %v): %d packs are left", n, after, ever, packs)
			}
			if got, err := bucketContents(server, t); err != nil || !sameContents(got, want) {
				t.Fatalf("request %d (after %v, ever %v), and collected: %v, %v", n, after, ever, got, err)
			}
			if *count <= n {
				break
			}
		}
	}
	if points < 20 {
		t.Fatalf("only %d points", points)
	}
}

func packsIn(server *buckettest.Double) (packs int) {
	for key := range server.Objects {
		if strings.Contains(key, "/packs/") {
			packs++
		}
	}
	return packs
}

// TestManyCommitsBecomeAWholeCatalog: an archive that is pushed to again and again keeps its newest commit short, and is read by few requests.
func TestManyCommitsBecomeAWholeCatalog(t *testing.T) {
	r, server := newRun(t, 1), buckettest.New()
	server.Age = 2 * sweepAge
	at := inBucket(t, server)
	const pushes = 60
	for push := range pushes {
		for key := range int64(10) {
			r.put(0, place{"a", model.NumberKey(int64(push)*10 + key)}, state{0, push, 10})
		}
		if _, err := pushToBucket(at, r.all(), Options{}); err != nil {
			t.Fatal(err)
		}
	}
	longest, empty, catalogs := 0, 0, 0
	for key, object := range server.Objects {
		switch {
		case strings.Contains(key, "/commits/"):
			longest = max(longest, len(object))
			if len(object) == 0 {
				empty++
			}
		case strings.Contains(key, "/catalogs/"):
			catalogs++
		}
	}
	if longest > 6<<20 || empty < pushes/2 || catalogs == 0 || catalogs > 4 {
		t.Fatalf("the longest commit has %d, %d of %d are empty, and there are %d catalogs", longest, empty, pushes, catalogs)
	}
	before := at.Costs().Requests
	if _, err := at.Read(); err != nil {
		t.Fatal(err)
	}
	if n := at.Costs().Requests - before; n > 4 {
		t.Fatalf("%d requests", n)
	}
	got, err := bucketContents(server, t)
	if err != nil || !sameContents(got, r.complete(nil)) {
		t.Fatalf("%d keys of %d: %v", len(got), 10*pushes, err)
	}
}

// drawPackBytes draws how many bytes are enough for a pack: for a batch one pack or several.
func drawPackBytes(t *rapid.T) int64 {
	return rapid.SampledFrom([]int64{0, 1, 50_000, 500_000}).Draw(t, "bytes of a pack")
}
