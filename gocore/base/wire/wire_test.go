package wire

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func room(n int64) ([]byte, error) { return make([]byte, n), nil }

func TestMessagesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := Request{
			Op: rapid.SampledFrom([]string{Get, Put, Part}).Draw(t, "op"), Key: rapid.String().Draw(t, "key"),
			From: rapid.Int64().Draw(t, "from"), New: rapid.Bool().Draw(t, "new"),
		}
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		var wire bytes.Buffer
		if err := Write(&wire, sent, body); err != nil {
			t.Fatal(err)
		}
		var got Request
		back, err := Read(&wire, &got, room)
		if err != nil || !bytes.Equal(back, body) || got.Op != sent.Op || got.From != sent.From || got.New != sent.New || wire.Len() > 0 {
			t.Fatalf("sent %+v and %x, got %+v and %x: %v", sent, body, got, back, err)
		}
	})
}

func TestNoBytesMakeReadPanicOrAllocate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wire := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "wire")
		asked := int64(0)
		_, err := Read(bytes.NewReader(wire), &Reply{}, func(n int64) ([]byte, error) {
			asked = n
			return make([]byte, n&0xffff), nil
		})
		if asked > MostBody || asked > 64 && err == nil {
			t.Fatalf("%d bytes of room for a message of %d bytes: %v", asked, len(wire), err)
		}
	})
}
