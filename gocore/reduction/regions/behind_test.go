package regions

import (
	"bytes"
	"errors"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
)

// Bytes behind the containers follow them directly, whatever their number, and count among the most bytes.
func TestBehind(t *testing.T) {
	plain := make([]byte, 5*model.PartGrain+77)
	for i := range plain {
		plain[i] = byte(i * i >> 7)
	}
	room := &Room{}
	defer room.Free()
	choices := []Choice{{codec.Int8, codec.AllModes}}
	for _, bytesOfRegion := range []int64{0, 1, int64(len(plain))} {
		spans := []model.Span{{Bytes: bytesOfRegion}}
		for _, n := range []int{0, 1, BlockBytes, behindBytes + 1, outBytes - 1, 2*outBytes + 5} {
			tail := bytes.Repeat([]byte("0123456789abcde"), n/15+1)[:n]
			var lengths *model.Encoding
			behind := func(e *model.Encoding) ([]byte, error) {
				lengths = e
				return tail, nil
			}
			run := func(most int64) (got []byte, err error) {
				_, err = EncodeBefore(behind, spans, choices, model.PartGrain, most, func(at int64, room []byte) ([]byte, error) {
					return plain[at:][:len(room)], nil
				}, func(p []byte) error {
					if len(p) == 0 || len(p)%BlockBytes != 0 {
						t.Errorf("the sink gets %d bytes", len(p))
					}
					got = append(got, p...)
					return nil
				}, Options{Goroutines: 2, Room: room})
				return got, err
			}
			got, err := run(1 << 40)
			if err != nil {
				t.Fatal(err)
			}
			end := lengths.Bytes() + int64(n)
			if int64(len(got)) != wholeBlocks(end) || !bytes.Equal(got[lengths.Bytes():end], tail) || len(bytes.Trim(got[end:], "\x00")) > 0 {
				t.Errorf("%d bytes behind %d of containers: not there in %d bytes", n, lengths.Bytes(), len(got))
			}
			if again, err := run(end); err != nil || !bytes.Equal(again, got) {
				t.Errorf("with no more than its own bytes: %v", err)
			}
			if _, err := run(end - 1); end > 0 && !errors.Is(err, ErrLarge) {
				t.Errorf("with one byte less: %v", err)
			}
		}
	}
	failed := errors.New("failed")
	_, err := EncodeBefore(func(*model.Encoding) ([]byte, error) { return nil, failed }, nil, nil, model.PartGrain, 100, nil, nil, Options{Room: room})
	if !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
}
