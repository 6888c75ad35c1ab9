package bucket

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

func drawID(t *rapid.T, name string) (i id) {
	copy(i[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
	return i
}

func drawDocument(t *rapid.T) document {
	d := document{store: drawID(t, "store"), number: rapid.Uint64().Draw(t, "number"), mark: drawID(t, "mark"), base: drawID(t, "base"), bytes: rapid.Int64Range(0, 1<<40).Draw(t, "bytes")}
	for range rapid.IntRange(0, 4).Draw(t, "packs") {
		d.packs = append(d.packs, Pack{rapid.Uint64Range(1, mostPacks).Draw(t, "pack"), rapid.Uint64().Draw(t, "commit"), drawID(t, "id"), rapid.Int64Range(0, SegmentBytes).Draw(t, "length")})
	}
	for range rapid.IntRange(0, 4).Draw(t, "files") {
		d.files = append(d.files, file{rapid.Uint64().Draw(t, "file"), rapid.SliceOf(rapid.Byte()).Draw(t, "content")})
	}
	return d
}

func TestDocumentsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawDocument(t)
		got, err := decode(want.encode())
		for i := range want.files {
			if err == nil && !bytes.Equal(got.files[i].bytes, want.files[i].bytes) {
				t.Fatalf("file %d differs", i)
			}
			if err == nil {
				got.files[i].bytes, want.files[i].bytes = nil, nil
			}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	})
}

// TestForgedDocumentsAreRefused: bytes with a right checksum are a document that is encoded like this, or an error, and never a panic.
func TestForgedDocumentsAreRefused(t *testing.T) {
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		d := drawDocument(t)
		p := d.encode()
		p = p[:len(p)-sumBytes]
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			p[rapid.IntRange(16, len(p)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		p = p[:rapid.IntRange(0, len(p)).Draw(t, "length")]
		p = binary.LittleEndian.AppendUint64(p, xxh3.Hash(p))
		got, err := decode(p)
		switch {
		case err == nil && !bytes.Equal(got.encode(), p):
			t.Fatal("bytes were read that are not those of the document")
		case err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrVersion):
			t.Fatal(err)
		case err != nil:
			refused++
		}
	})
	if refused == 0 {
		t.Fatal("nothing was refused")
	}
}
