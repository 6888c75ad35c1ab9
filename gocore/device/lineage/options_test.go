package lineage

import (
	"errors"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/difference"
)

func TestOptions(t *testing.T) {
	good := Options{Method: difference.Tree, Chunk: 1024, Entries: 5, Blocks: true}
	l, err := New(good, 64)
	if err != nil {
		t.Fatal(err)
	}
	if o := l.Options(); o.Blocks || o.MaxReferences != difference.MaxReferences {
		t.Errorf("completed: %+v", o)
	}
	for what, change := range map[string]func(*Options){
		"method":     func(o *Options) { o.Method = difference.Full },
		"chunk":      func(o *Options) { o.Chunk = 16 },
		"entries":    func(o *Options) { o.Entries = -1 },
		"references": func(o *Options) { o.MaxReferences = difference.MaxReferences + 1 },
	} {
		o := good
		change(&o)
		if _, err := New(o, 64); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, record := range []device.Address{0, 8} {
		if _, err := New(good, record); !errors.Is(err, ErrOptions) {
			t.Errorf("a record at %d: %v", record, err)
		}
	}
	if _, err := New(Options{Method: difference.Basic, Chunk: 32, Entries: 5}, 0); err != nil {
		t.Errorf("Basic without a record: %v", err)
	}
}

// Digests begin at multiples of 64, and those of blocks are there only for short chunks.
func TestBytes(t *testing.T) {
	o := Options{Method: difference.List, Chunk: 512, Entries: 100, Blocks: true}
	if n := o.DigestBytes([]int64{0, 1, 4096, 4097, 100_000}); n != 0+(64+64)+(128+64)+(192+64)+(3136+448) {
		t.Errorf("%d B of digests", n)
	}
	if o.Chunk = 1024; o.DigestBytes([]int64{4096}) != 64 {
		t.Errorf("%d B of digests of long chunks", o.DigestBytes([]int64{4096}))
	}
	if n := o.RecordBytes(); n != 64+2*100*32 {
		t.Errorf("a record of %d B", n)
	}
	if o.Method = difference.Basic; o.RecordBytes() != 0 {
		t.Errorf("a record of Basic of %d B", o.RecordBytes())
	}
}
