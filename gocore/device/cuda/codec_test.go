package cuda_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"velocpy/gocore/device"
	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/cuda/double"
	"velocpy/gocore/device/cuda/kernel"
	"velocpy/gocore/reduction/codec"
)

// container is one whose bytes are arbitrary.
func (r *rig) container() []device.Container {
	const n = 100_000
	base := r.arena.Base()
	return []device.Container{{Plain: base, Bytes: n, Kind: codec.Float32, Modes: codec.AllModes, At: base + 1<<20, Length: int64(codec.Bound(n))}}
}

func (r *rig) encode() (device.Lengths, error) {
	return r.lane.Encode(r.container(), r.arena.Base()+4<<20)
}

// A device that never encodes does not load the kernels for it, and one that does loads them once.
func TestCodecIsLoadedByTheFirstUse(t *testing.T) {
	r := open(t, double.Config{})
	asked := 0
	r.dev.UseCodec(func() ([]byte, error) { asked++; return image, nil })
	if n := r.driver.Calls("LoadModule"); n != 1 || asked != 0 {
		t.Fatalf("%d modules, %d reads before the first use", n, asked)
	}
	for range 3 {
		lengths, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		r.wait()
		if n := lengths.Take(); len(n) != 1 || n[0] < int64(codec.PayloadsAt(100_000)) {
			t.Errorf("lengths %v", n)
		}
	}
	if n := r.driver.Calls("LoadModule"); n != 2 || asked != 1 {
		t.Errorf("%d modules, %d reads", n, asked)
	}
	r.close()
}

// Without kernels of the codec the device works, and an Encode says which file is missing.
func TestWithoutCodec(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "/nowhere/velocpy_codec.fatbin", Err: fs.ErrNotExist}
	for what, load := range map[string]func() ([]byte, error){
		"not told":   nil,
		"no file":    func() ([]byte, error) { return nil, missing },
		"empty file": func() ([]byte, error) { return nil, nil },
	} {
		r := open(t, double.Config{})
		asked := 0
		r.dev.UseCodec(nil)
		if load != nil {
			r.dev.UseCodec(func() ([]byte, error) { asked++; return load() })
		}
		_, encoding := r.encode()
		_, decoding := r.lane.Decode(r.container(), r.arena.Base()+4<<20)
		if !errors.Is(encoding, device.ErrCodec) || !errors.Is(decoding, device.ErrCodec) || asked > 1 || r.dev.Lost() != nil {
			t.Errorf("%s: %v, %v, %d reads", what, encoding, decoding, asked)
		}
		if what == "no file" && !strings.Contains(encoding.Error(), missing.Path) {
			t.Errorf("the file is not in %q", encoding)
		}
		if _, err := r.lane.Hash(r.pieces()); err != nil {
			t.Error(err)
		}
		r.wait()
		r.close()
	}
}

// Kernels that do not load are as none, unless the context is lost.
func TestCodecThatDoesNotLoad(t *testing.T) {
	for _, c := range []struct {
		call string
		code cuda.Code
		skip int
		lost bool
	}{
		{"LoadModule", cuda.NoBinary, 0, false}, {"LoadModule", cuda.OutOfMemory, 0, false}, {"Function", cuda.NotFound, 0, false},
		{"Function", cuda.NotFound, len(kernel.CodecNames()) - 1, false}, {"LoadModule", cuda.IllegalAddress, 0, true},
	} {
		r := open(t, double.Config{})
		r.driver.Fail(c.call, c.code, c.skip, 1)
		_, err := r.encode()
		if !cuda.Is(err, c.code) || errors.Is(err, device.ErrLost) != c.lost || errors.Is(err, device.ErrCodec) == c.lost {
			t.Errorf("%s fails with %d: %v", c.call, c.code, err)
		}
		if _, again := r.encode(); !c.lost && again != err {
			t.Errorf("%s failed with %d: then %v", c.call, c.code, again)
		}
		if !c.lost {
			r.close()
		}
	}
}

// A launch that fails is an error of that call alone.
func TestCodecLaunchFails(t *testing.T) {
	r := open(t, double.Config{})
	for skip := range 2 {
		r.driver.Fail("Launch", cuda.NotSupported, skip, 1)
		if lengths, err := r.encode(); !cuda.Is(err, cuda.NotSupported) || lengths != nil {
			t.Errorf("launch %d fails: %v", skip, err)
		}
		r.driver.Fail("Launch", cuda.NotSupported, skip, 1)
		if faults, err := r.lane.Decode(r.container(), r.arena.Base()+4<<20); !cuda.Is(err, cuda.NotSupported) || faults != nil {
			t.Errorf("launch %d fails: %v", skip, err)
		}
	}
	lengths, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	r.wait()
	lengths.Discard()
	r.close()
}
