package bucket_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/base/wire"
	"velocpy/gocore/tier/disk/bucket"
	"velocpy/gocore/tier/disk/bucket/buckettest"
	"velocpy/gocore/tier/disk/journal"
)

var identity = append(bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{7}, 8<<10-16)...)

// fataler is a test, or a property that is checked.
type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func at(t fataler, server bucket.Server) *bucket.Bucket {
	b, err := bucket.At(server, "s3://bucket/run")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// read reads the archive, and the records of its catalog.
func read(t fataler, server bucket.Server) (*bucket.Image, []string) {
	image, err := at(t, server).Read()
	if err != nil {
		t.Fatal(err)
	}
	return image, records(t, image)
}

// uploaded uploads the next packs, of so many bytes each, with one content.
func uploaded(b *bucket.Bucket, image *bucket.Image, content byte, lengths ...int64) ([]*bucket.Pack, error) {
	var drafts []bucket.Draft
	for _, n := range lengths {
		drafts = append(drafts, bucket.Draft{Bytes: n, Content: uint64(content)})
	}
	all, err := image.Plan(drafts...)
	for _, x := range all {
		err = errors.Join(err, b.Upload(2, bucket.Filling{Pack: x, Fill: fill(content)}))
	}
	return all, err
}

func records(t fataler, image *bucket.Image) (all []string) {
	fs := image.FS()
	names, _ := fs.List("")
	if len(names) == 1 {
		return nil // the identity alone
	}
	var store [16]byte
	copy(store[:], identity[16:])
	state, err := journal.Read(journal.Options{FS: fs, Dir: "/", Store: store}, func(record []byte) error {
		if len(record) > 0 {
			all = append(all, string(record))
		}
		return nil
	})
	if err != nil || len(state.Damage) > 0 {
		t.Fatalf("%v, %+v", err, state)
	}
	return all
}

func fill(content byte) func(p []byte) error {
	return func(p []byte) error {
		for n := 0; n < len(p); { // by doubling, as the race detector sees every store of a loop
			if n == 0 {
				p[0], n = content, 1
			}
			n += copy(p[n:], p[:n])
		}
		return nil
	}
}

// TestCommitsAddUp: whatever writers do, one after the other or from an old image, the archive has the records of the commits that were acknowledged, in their
// order, and the bytes of their packs.
func TestCommitsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		server := buckettest.New()
		if err := at(t, server).Make(identity); err != nil {
			t.Fatal(err)
		}
		var want []string
		var packs []byte // contents of packs, by number
		image, _ := read(t, server)
		images := []*bucket.Image{image}
		for step := range rapid.IntRange(1, 30).Draw(t, "steps") {
			from := images[len(images)-1]
			old := rapid.IntRange(0, 4).Draw(t, "old") == 0
			if old {
				from = images[rapid.IntRange(0, len(images)-1).Draw(t, "from")]
			}
			stale := from != images[len(images)-1]
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0: // a whole catalog, on which the next commits rely
				if !stale {
					whole, err := from.Whole(func(give func([]byte) error) error {
						for _, one := range want {
							if err := give([]byte(one)); err != nil {
								return err
							}
						}
						return nil
					}, nil)
					if err != nil {
						t.Fatal(err)
					}
					images[len(images)-1] = whole
				}
			default:
				record := fmt.Sprintf("record %d", step)
				c := &bucket.Change{Record: []byte(record)}
				lengths, content := rapid.SliceOfN(rapid.Int64Range(0, 3<<12), 0, 3).Draw(t, "packs"), byte(step)
				var err error
				if c.Packs, err = uploaded(at(t, server), from, content, lengths...); err != nil {
					t.Fatal(err)
				}
				next, err := from.Commit(c)
				if stale {
					if !errors.Is(err, bucket.ErrConflict) {
						t.Fatalf("a writer that has read commit %d of %d: %v", from.Number(), images[len(images)-1].Number(), err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				images, want = append(images, next), append(want, record)
				packs = append(packs, bytes.Repeat([]byte{content}, len(lengths))...)
			}
		}
		image, got := read(t, server)
		if !slices.Equal(got, want) || image.Number() != uint64(len(want)) {
			t.Fatalf("%d records in %d commits, want %d", len(got), image.Number(), len(want))
		}
		names, _ := image.FS().List("")
		number := 0
		for _, name := range names {
			if !strings.HasPrefix(name, "data-") {
				continue
			}
			file, err := image.FS().Open("/"+name, false, false)
			if err != nil {
				t.Fatal(err)
			}
			size, _ := file.Size()
			p := make([]byte, size)
			if n, err := file.ReadAt(p, 0); err != nil || n < len(p) || len(bytes.Trim(p, string([]byte{packs[number]}))) > 0 {
				t.Fatalf("pack %d: %d of %d bytes, %v", number, n, size, err)
			}
			number++
		}
		if number != len(packs) {
			t.Fatalf("%d packs of %d", number, len(packs))
		}
	})
}

var errCut = fmt.Errorf("cut: %w", unix.ECONNRESET)

// scenario makes an archive and three commits, with packs in parts and a whole catalog, and collects what is left. It returns the records that were acknowledged.
func scenario(server bucket.Server) (acknowledged []string, err error) {
	b, err := bucket.At(server, "s3://bucket/run")
	if err != nil {
		return nil, err
	}
	if err := b.Make(identity); err != nil {
		return nil, err
	}
	image, err := b.Read()
	for step := 0; step < 3 && err == nil; step++ {
		c := &bucket.Change{Record: fmt.Appendf(nil, "record %d", image.Number())}
		if c.Packs, err = uploaded(b, image, byte(step), 17<<20); err != nil {
			break
		}
		left, failed := image.Leftovers(true)
		if err = failed; err != nil {
			break
		}
		var next *bucket.Image
		if next, err = image.Commit(c); err != nil {
			break
		}
		acknowledged = append(acknowledged, string(c.Record))
		image = next
		if _, err = left.Collect(image, 0, false); err != nil {
			break
		}
		if _, _, err = image.Replace(0, false); err == nil && step == 1 {
			image, err = image.Whole(func(give func([]byte) error) error {
				return errors.Join(give([]byte("record 0")), give([]byte("record 1")))
			}, nil)
		}
	}
	return acknowledged, err
}

// TestEveryRequestMayFail: a request fails, before the server has carried it out or after, once or from then on. What was acknowledged is there, and a writer that
// comes later goes on.
func TestEveryRequestMayFail(t *testing.T) {
	for _, after := range []bool{false, true} {
		for _, ever := range []bool{false, true} {
			for n := 0; ; n++ {
				server, count := buckettest.New(), 0
				failing := func(int) bool {
					count++
					return count-1 == n || ever && count-1 > n
				}
				if after {
					server.After = func(q *wire.Request, _ *wire.Reply) error {
						if failing(0) {
							return errCut
						}
						return nil
					}
				} else {
					server.Before = func(q *wire.Request) error {
						if failing(0) {
							return errCut
						}
						return nil
					}
				}
				acknowledged, err := scenario(server)
				server.Before, server.After = nil, nil
				if err := at(t, server).Make(identity); err != nil {
					t.Fatal(err)
				}
				image, got := read(t, server)
				if len(got) < len(acknowledged) || len(got) > len(acknowledged)+1 || !slices.Equal(got[:len(acknowledged)], acknowledged) {
					t.Fatalf("request %d (after %v, ever %v): %q were acknowledged, and %q are there: %v", n, after, ever, acknowledged, got, err)
				}
				left, err2 := image.Leftovers(true)
				if err2 != nil {
					t.Fatal(err2)
				}
				next, err2 := image.Commit(&bucket.Change{Record: []byte("more")})
				if err2 != nil {
					t.Fatalf("request %d (after %v, ever %v): %v", n, after, ever, err2)
				}
				if _, err := left.Collect(next, 0, false); err != nil {
					t.Fatal(err)
				}
				packs := 0
				for key := range server.Objects {
					if strings.HasPrefix(key, "run/packs/") {
						packs++
					}
				}
				if _, more := read(t, server); len(more) != len(got)+1 || packs != len(got) || server.Uploads() > 0 {
					t.Fatalf("request %d (after %v, ever %v): %d records and %d packs behind %d, %d uploads", n, after, ever, len(more), packs, len(got), server.Uploads())
				}
				if count <= n {
					if n < 10 {
						t.Fatalf("only %d requests", n)
					}
					break // none has failed
				}
				if err == nil && ever && !after {
					t.Fatalf("request %d and all behind it failed, and nothing was said", n)
				}
			}
		}
	}
}

// TestACollectedPushCannotCommit: what a push has uploaded is collected while it sleeps. Its commit fails then, however long it has slept, and whatever
// was replaced meanwhile.
func TestACollectedPushCannotCommit(t *testing.T) {
	server := buckettest.New()
	b := at(t, server)
	if err := b.Make(identity); err != nil {
		t.Fatal(err)
	}
	sleeper, err := b.Read()
	if err != nil {
		t.Fatal(err)
	}
	packs, err := uploaded(b, sleeper, 1, 5000)
	if err != nil {
		t.Fatal(err)
	}
	now := sleeper
	for range 3 {
		left, err := now.Leftovers(true)
		if err != nil {
			t.Fatal(err)
		}
		if now, err = now.Commit(&bucket.Change{Record: []byte("other")}); err != nil {
			t.Fatal(err)
		}
		if _, err := left.Collect(now, 0, false); err != nil {
			t.Fatal(err)
		}
		if _, _, err := now.Replace(0, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sleeper.Commit(&bucket.Change{Record: []byte("late"), Packs: packs}); !errors.Is(err, bucket.ErrConflict) {
		t.Fatalf("a commit whose pack is gone: %v", err)
	}
	if _, got := read(t, server); !slices.Equal(got, []string{"other", "other", "other"}) {
		t.Fatalf("%q", got)
	}
}

// TestDamagedObjectsAreTold: any change of any object but a pack is an error, and never another archive.
func TestDamagedObjectsAreTold(t *testing.T) {
	server := buckettest.New()
	if _, err := scenario(server); err != nil {
		t.Fatal(err)
	}
	_, want := read(t, server)
	rapid.Check(t, func(t *rapid.T) {
		var keys []string
		for key, object := range server.Objects {
			if !strings.Contains(key, "/packs/") && len(object) > 0 {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		key := rapid.SampledFrom(keys).Draw(t, "key")
		before := server.Objects[key]
		defer func() { server.Objects[key] = before }()
		changed := slices.Clone(before)
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			changed[rapid.IntRange(0, len(changed)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			changed = changed[:rapid.IntRange(0, len(changed)-1).Draw(t, "length")]
		case 2:
			delete(server.Objects, key)
			changed = nil
		}
		if changed != nil {
			server.Objects[key] = changed
		}
		image, err := at(t, server).Read()
		if err != nil {
			return
		}
		if strings.HasSuffix(key, "velocpy.store") {
			return // package durable reads it
		}
		if got := records(t, image); !slices.Equal(got, want) {
			t.Fatalf("%s changed, and %q were read, want %q", key, got, want)
		}
	})
}
