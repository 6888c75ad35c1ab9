package path

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/model"
	"velocpy/gocore/tier"
)

// slow is an object whose reads take a while. It counts how many are under way.
type slow struct {
	tier.Source
	content []byte
	fails   int64 // the read that begins here fails; -1: none

	mu          sync.Mutex
	now, most   int
	begun, told int64
}

func (s *slow) Read(at int64, to []byte, arrived func(at, n int64)) error {
	s.mu.Lock()
	s.now++
	s.most, s.begun = max(s.most, s.now), s.begun+1
	s.mu.Unlock()
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	if at == s.fails {
		return errSlow
	}
	copy(to, s.content[at:])
	s.told += int64(len(to))
	arrived(0, int64(len(to)))
	return nil
}

var errSlow = errors.New("cannot be read")

// fetching is a path that reads spans of an object.
func fetching(s *slow, spans []model.Span) *Path {
	p := &Path{c: cache.New(config.Settings{Config: config.Config{Checksum: true}}), version: &checkpoint.Version{Sums: []uint64{}}, spans: spans}
	p.source = &objectSource{s, p}
	return p
}

// All spans are read, some of them at the same time, and nothing beside them.
func TestSpansOfAnObjectAreReadAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := make([]byte, 4000)
		for i := range content {
			content[i] = byte(1 + rand.IntN(255))
		}
		var spans []model.Span
		want, at := make([]byte, len(content)), int64(0)
		for range rapid.IntRange(0, 9).Draw(t, "spans") {
			at += rapid.Int64Range(1, 100).Draw(t, "gap")
			span := model.Span{Offset: at, Bytes: rapid.Int64Range(1, 300).Draw(t, "bytes")}
			copy(want[span.Offset:span.End()], content[span.Offset:])
			at, spans = span.End(), append(spans, span)
		}
		s := &slow{content: content, fails: -1}
		got := make([]byte, len(content))
		if err := (filling{fetching(s, spans), got}).all(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%v, or other bytes", err)
		}
		if s.begun != int64(len(spans)) || s.most > spansAtOnce || len(spans) > 2*spansAtOnce && s.most < 2 {
			t.Fatalf("%d reads of %d spans, up to %d at once", s.begun, len(spans), s.most)
		}
	})
}

// A span that cannot be read fails the transfer, and no reads are left under way.
func TestASpanThatCannotBeRead(t *testing.T) {
	var spans []model.Span
	for at := range int64(40) {
		spans = append(spans, model.Span{Offset: 10 * at, Bytes: 5})
	}
	for _, fails := range []int64{0, 10, 200, 390} {
		s := &slow{content: make([]byte, 400), fails: fails}
		if err := (filling{fetching(s, spans), make([]byte, 400)}).all(); !errors.Is(err, errSlow) {
			t.Errorf("the span at %d: %v", fails, err)
		}
		if s.now != 0 {
			t.Errorf("the span at %d: %d reads are under way", fails, s.now)
		}
	}
}
