package regions

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
)

// BenchmarkEncode encodes a smooth field of floats of four bytes in containers of a MiB, for a sink that takes no time.
func BenchmarkEncode(b *testing.B) {
	for _, mib := range []int64{1, 16} {
		for _, goroutines := range []int{1, 2} {
			b.Run(fmt.Sprint(mib, " MiB, goroutines ", goroutines), func(b *testing.B) {
				slot := make([]byte, mib<<20)
				for i := 0; i < len(slot); i += 4 {
					binary.LittleEndian.PutUint32(slot[i:], math.Float32bits(float32(math.Sin(float64(i)/30000)+0.1*math.Sin(float64(i)/900))))
				}
				spans := []model.Span{{Bytes: mib << 20}}
				choices := []Choice{{codec.Float32, codec.Only(codec.Diff, codec.Const)}}
				from := func(at int64, room []byte) ([]byte, error) { return slot[at : at+int64(len(room))], nil }
				to := func([]byte) error { return nil }
				room := &Room{}
				defer room.Free()
				b.SetBytes(mib << 20)
				for b.Loop() {
					if _, err := Encode(spans, choices, 1<<20, boundless, from, to, Options{Goroutines: goroutines, Room: room}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
