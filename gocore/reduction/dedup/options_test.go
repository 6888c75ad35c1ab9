package dedup

import (
	"errors"
	"strings"
	"testing"

	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

func isVerify(err error) bool { return errors.Is(err, ErrVerify) }

func TestOptions(t *testing.T) {
	good := Options{Method: difference.Tree, Chunk: 128}
	for _, c := range []struct {
		change func(*Options)
		want   error
	}{
		{func(o *Options) {}, nil},
		{func(o *Options) { o.Chunk = 32 }, nil},
		{func(o *Options) { o.Chunk = 4096 }, nil},
		{func(o *Options) { o.Chunk = 0 }, ErrChunk},
		{func(o *Options) { o.Chunk = 16 }, ErrChunk},
		{func(o *Options) { o.Chunk = 96 }, ErrChunk},
		{func(o *Options) { o.Chunk = 8192 }, ErrChunk},
		{func(o *Options) { o.Chunk = -32 }, ErrChunk},
		{func(o *Options) { o.Method = 0 }, ErrOptions},
		{func(o *Options) { o.Method = 6 }, ErrOptions},
		{func(o *Options) { o.Kind = 3 }, ErrOptions},
		{func(o *Options) { o.Record = -1 }, ErrOptions},
		{func(o *Options) { o.MaxReferences = -1 }, ErrOptions},
		{func(o *Options) { o.MaxReferences = 1 << 15 }, ErrOptions},
	} {
		o := good
		c.change(&o)
		if _, err := New(o); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", o, err, c.want)
		}
	}
}

func TestInvalidCheckpoints(t *testing.T) {
	l, err := New(Options{Method: difference.Tree, Chunk: 128, Record: record.Memory(100)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		number  uint32
		regions []Region
		want    error
	}{
		{0, nil, nil},
		{0, nil, ErrOrder},
		{7, []Region{{"a", nil}, {"a", nil}}, ErrRegion},
		{7, []Region{{strings.Repeat("x", 1<<16), nil}}, ErrRegion},
		{7, []Region{{strings.Repeat("x", 1<<16-1), nil}, {"", nil}}, nil},
		{6, nil, ErrOrder},
		{7, nil, ErrOrder},
		{1<<32 - 1, nil, ErrOrder},
		{1<<32 - 2, nil, nil},
	} {
		if _, _, err := l.Dedup(c.number, c.regions); !errors.Is(err, c.want) {
			t.Errorf("checkpoint %d of %d regions: %v, want %v", c.number, len(c.regions), err, c.want)
		}
	}
}

// A call that fails changes nothing: a later call with a smaller number still finds what is not too old for it.
func TestFailureKeepsTheRecord(t *testing.T) {
	h := newHistory(t, Options{Method: difference.List, Chunk: 32}, false)
	fail := false
	o := Options{Method: difference.List, Chunk: 32, Record: record.Memory(100), MaxAge: 5}
	o.Read = func(checkpoint uint32, offset uint64, p []byte) error {
		if fail {
			return errors.New("no disk")
		}
		return h.read(checkpoint, offset, p)
	}
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.lineage = l
	a, b := Region{"a", noise(64)}, Region{"b", noise(65)}
	h.add(1, []Region{a, b})
	h.add(2, []Region{b})
	fail = true
	if _, _, err := l.Dedup(100, []Region{b}); !isVerify(err) {
		t.Fatal(err)
	}
	fail = false
	if d := h.add(3, []Region{a, b}); len(d.Data) != 0 {
		t.Errorf("%d bytes were stored again", len(d.Data))
	}
}
