package device_test

import (
	"errors"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/codec"

	"pgregory.net/rapid"
)

// The scratch memory has 8 bytes for each chunk of each container.
func TestCodecScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(1, device.MostContainer), 0, 50).Draw(t, "sizes")
		var all []device.Container
		plain, chunks := int64(0), int64(0)
		for _, n := range sizes {
			all = append(all, device.Container{Bytes: n})
			plain += n
			chunks += int64(codec.Chunks(int(n)))
		}
		n := device.CodecScratch(plain, len(sizes))
		if n < 8*chunks || n > 8*(chunks+int64(len(sizes)))+256 || n%256 != 0 || device.ScratchFor(all) != n {
			t.Fatalf("%d bytes of scratch memory for %d chunks of %d containers, %d for the same list", n, chunks, len(sizes), device.ScratchFor(all))
		}
	})
}

func TestCheckOfContainers(t *testing.T) {
	good := device.Container{Plain: 1, Bytes: device.MostContainer, Kind: codec.Float64, At: 16, Length: int64(codec.Bound(device.MostContainer))}
	if err := errors.Join(device.CheckEncode([]device.Container{good}, 16), device.CheckDecode([]device.Container{good}, 16), device.CheckEncode(nil, 0)); err != nil {
		t.Error(err)
	}
	without := good
	without.Length = 0
	if err := device.CheckEncode([]device.Container{without}, 16); err != nil {
		t.Error(err)
	}
	if err := device.CheckDecode([]device.Container{without}, 16); !errors.Is(err, device.ErrContainer) {
		t.Error(err)
	}
}
