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

// A reference may be at the plain bytes and beside them, and not where the container is written.
func TestCheckOfReferences(t *testing.T) {
	const n = 1000
	bound := device.Address(codec.Bound(n))
	for _, c := range []struct {
		reference      device.Address
		encode, decode bool
	}{
		{0, true, true}, {4096, true, true}, {4096 - n, true, true}, {4096 + n, true, true}, {4095, true, false}, {4097, true, false},
		{4096 - n + 1, true, false}, {4096 + n - 1, true, false}, {8192 - n, true, true}, {8192 + bound, true, true}, {8192 - n + 1, false, true},
		{8192 + bound - 1, false, true}, {8192, false, true},
	} {
		all := []device.Container{{Plain: 4096, Bytes: n, Kind: codec.Float32, At: 8192, Length: int64(bound), Reference: c.reference}}
		if err := device.CheckEncode(all, 16); (err == nil) != c.encode || err != nil && !errors.Is(err, device.ErrContainer) {
			t.Errorf("encoding with a reference at %d: %v", c.reference, err)
		}
		if err := device.CheckDecode(all, 16); (err == nil) != c.decode || err != nil && !errors.Is(err, device.ErrContainer) {
			t.Errorf("decoding with a reference at %d: %v", c.reference, err)
		}
	}
}
