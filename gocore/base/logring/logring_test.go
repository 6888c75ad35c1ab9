package logring

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestOldestFirstWithTimes(t *testing.T) {
	r := New(4)
	r.Add(Info, "a")
	r.Add(Error, "b")
	got := r.Drain(10)
	if len(got) != 2 || got[0].Message != "a" || got[0].Level != Info || got[1].Message != "b" || got[1].Level != Error {
		t.Fatalf("%+v", got)
	}
	if got[0].TimeNs <= 0 || got[1].TimeNs < got[0].TimeNs {
		t.Fatalf("times %d, %d", got[0].TimeNs, got[1].TimeNs)
	}
	if again := r.Drain(10); len(again) != 0 {
		t.Fatalf("drained twice: %+v", again)
	}
}

// Compared with a plain slice: no record is reordered, and kept + lost = added.
func TestRingAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 5).Draw(t, "size")
		r := New(size)
		size = max(size, 1)
		var model []string
		lost := 0
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "what") > 0 {
				r.Add(Debug, fmt.Sprint(i))
				if model = append(model, fmt.Sprint(i)); len(model) > size {
					model, lost = model[1:], lost+1
				}
				continue
			}
			n := rapid.IntRange(-1, 7).Draw(t, "max")
			want := []string{}
			if lost > 0 && n > 0 {
				want, lost = append(want, fmt.Sprintf("%d log records were lost: nobody drained them in time", lost)), 0
			}
			for len(want) < n && len(model) > 0 {
				want, model = append(want, model[0]), model[1:]
			}
			got := []string{}
			for _, rec := range r.Drain(n) {
				got = append(got, rec.Message)
			}
			if strings.Join(got, "|") != strings.Join(want, "|") {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	})
}

func TestLongMessageIsCutAtACharacter(t *testing.T) {
	r := New(1)
	for pad := range 4 {
		long := strings.Repeat("x", pad) + strings.Repeat("\U0001F600", MaxMessage)
		r.Add(Info, long)
		got := r.Drain(1)[0].Message
		if len(got) > MaxMessage || len(got) < MaxMessage-3 || !utf8.ValidString(got) || !strings.HasPrefix(long, got) {
			t.Fatalf("pad %d: %d bytes, valid %v", pad, len(got), utf8.ValidString(got))
		}
	}
}

func TestManyWritersAndOneReader(t *testing.T) {
	const writers, each = 8, 2000
	Drain(Kept + 1)
	var all sync.WaitGroup
	for range writers {
		all.Add(1)
		go func() {
			defer all.Done()
			for range each {
				Add(Debug, "m")
			}
		}()
	}
	seen := 0
	count := func() {
		for _, rec := range Drain(Kept) {
			var n int
			if _, err := fmt.Sscanf(rec.Message, "%d log records", &n); err == nil {
				seen += n
			} else {
				seen++
			}
		}
	}
	for range 100 {
		count()
	}
	all.Wait()
	for range 3 {
		count()
	}
	if seen != writers*each {
		t.Fatalf("%d records seen or counted as lost, %d added", seen, writers*each)
	}
}
