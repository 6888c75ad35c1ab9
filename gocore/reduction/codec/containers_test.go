package codec

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var containers = flag.String("containers", "", "write containers into this folder, which benchmarks/device/codec.py compares with those of the CUDA kernels")

// suited are the first family and the number of families that a region in one mode alone has.
var suited = map[Mode][2]int{Const: {1, 2}, Diff: {7, 3}, Exp: {5, 3}, Xrz: {0, 3}, Step: {6, 3}}

// A file of the flag's folder is: u32 word, exponent, modes, 1 if there is a reference; u64 bytes of the region, bytes of the container; the region, the
// reference, the container. All numbers are little-endian.
func TestWriteContainers(t *testing.T) {
	if *containers == "" {
		t.Skip("writes files; needs -args -containers FOLDER")
	}
	if err := os.MkdirAll(*containers, 0o755); err != nil {
		t.Fatal(err)
	}
	number := 0
	write := func(name string, x region) {
		path := filepath.Join(*containers, fmt.Sprintf("%03d-%v-%d-%s.bin", number, x.kind.Word, x.kind.Exponent, name))
		if err := os.WriteFile(path, containerFile(t, x), 0o644); err != nil {
			t.Fatal(err)
		}
		number++
	}
	for i, k := range kinds {
		writeFamilies(k, uint64(i), write)
	}
	for _, s := range samples() {
		part := func(p []byte) []byte { return p[:min(len(p), 3*ChunkBytes+1004)] }
		write("all-sample", region{kind: s.kind, plain: part(s.plain), reference: part(s.reference), modes: AllModes})
	}
}

// writeFamilies writes a region with a chunk of each family and a short last chunk, with and without a reference, and a region for each mode alone.
func writeFamilies(k Kind, seed uint64, write func(name string, x region)) {
	plain := make([]byte, len(families)*ChunkBytes+9001)
	for f := range families {
		fillFamily(plain[f*ChunkBytes:][:ChunkBytes], k, f, seed)
	}
	fillFamily(plain[len(families)*ChunkBytes:][:9000], k, 0, seed)
	reference := change(plain, k, 60, seed)
	write("all", region{kind: k, plain: plain, modes: AllModes})
	write("all-reference", region{kind: k, plain: plain, reference: reference, modes: AllModes})
	for m := Const; m < modes; m++ {
		from := suited[m][0] * ChunkBytes
		to := from + suited[m][1]*ChunkBytes + 7001
		x := region{kind: k, plain: plain[from:to], modes: Only(m)}
		if m.referenced() {
			x.reference = reference[from:to]
		}
		write(m.String(), x)
	}
}

// containerFile encodes a region, and fails unless its container decodes to the same bytes.
func containerFile(t *testing.T, x region) []byte {
	container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
	back := dirty(len(x.plain))
	if err := Decode(back, container, x.reference, 1); err != nil || !bytes.Equal(back, x.plain) {
		t.Fatalf("decoding: %v", err)
	}
	referenced := uint32(0)
	if x.reference != nil {
		referenced = 1
	}
	var file []byte
	for _, v := range []uint32{uint32(x.kind.Word), uint32(x.kind.Exponent), uint32(x.modes), referenced} {
		file = binary.LittleEndian.AppendUint32(file, v)
	}
	for _, n := range []int{len(x.plain), len(container)} {
		file = binary.LittleEndian.AppendUint64(file, uint64(n))
	}
	return append(append(append(file, x.plain...), x.reference...), container...)
}
