package codec

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/golden.txt anew: only together with a new version of the format")

// goldenRegions have short containers in all modes and kinds. Their bytes come from integer arithmetic alone, so that they are the same everywhere.
func goldenRegions() (list []region) {
	for _, k := range kinds {
		for family := range 3 {
			x := region{kind: k, plain: make([]byte, 40*int(k.Word)+int(k.Word)/2), modes: AllModes}
			for i := range x.plain {
				switch at := i / int(k.Word); family {
				case 0:
					x.plain[i] = byte((at*at*3 + 1000) >> (8 * (i % int(k.Word))))
				case 1:
					x.plain[i] = noise(at)[8-int(k.Word)+i%int(k.Word)]
				default:
					x.plain[i] = byte(i*i*5 + i>>3)
				}
			}
			if family == 2 {
				x.reference = bytes.Clone(x.plain)
				for i := 0; i < len(x.plain); i += 23 {
					x.reference[i] += byte(i)
				}
			}
			for m := range modes {
				x.modes = Only(m)
				list = append(list, x)
			}
		}
	}
	return append(list, region{kind: Int8, modes: AllModes}, region{kind: Float32, plain: make([]byte, 2*ChunkBytes+9), modes: AllModes})
}

// noise is a number near one whose low bytes vary.
func noise(at int) [8]byte {
	return [8]byte{byte(at * 37), byte(at * at * 11), byte(at*at*at*7 + at), 3, byte(at * 91), 0x80, 0x3f + byte(at%4), 0x3f}
}

// The format cannot change unnoticed: the containers of fixed regions are in a file, and so decode as they did.
func TestGolden(t *testing.T) { everyWay(t, testGolden) }

func testGolden(t *testing.T) {
	const name = "testdata/golden.txt"
	var text strings.Builder
	var seen [ModeCount]bool
	for _, x := range goldenRegions() {
		container := encode(t, x.plain, x.reference, Options{Kind: x.kind, Modes: x.modes})
		c, err := Open(container, len(x.plain))
		if err != nil {
			t.Fatal(err)
		}
		if c.Chunks() > 0 {
			seen[c.Entry(0).Mode] = true
		}
		text.WriteString(hex.EncodeToString(container) + "\n")
	}
	if *rewrite {
		if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text.String() {
		t.Error("the containers differ from those in " + name)
	}
	for m, has := range seen {
		if !has {
			t.Errorf("no container in mode %v", Mode(m))
		}
	}
	decodeGolden(t, strings.Fields(string(want)))
}

func decodeGolden(t *testing.T, lines []string) {
	for i, x := range goldenRegions() {
		container, err := hex.DecodeString(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		back := dirty(len(x.plain))
		if err := Decode(back, container, x.reference, 1); err != nil || !bytes.Equal(back, x.plain) {
			t.Errorf("region %d: %v", i, err)
		}
	}
}

// Whole chunks of all families, and a short one, have the bytes that they had: the hashes of their containers are in a file.
func TestGoldenHashes(t *testing.T) { everyWay(t, testGoldenHashes) }

func testGoldenHashes(t *testing.T) {
	onlyOne(t)
	const name = "testdata/hashes.txt"
	var text strings.Builder
	for i, k := range kinds {
		plain := make([]byte, len(families)*ChunkBytes+11003)
		for f := range families {
			fillFamily(plain[f*ChunkBytes:][:ChunkBytes], k, f, uint64(i))
		}
		fillFamily(plain[len(families)*ChunkBytes:][:11000], k, 6, uint64(i))
		for _, many := range []int{0, 1, 3, 60, 3000} {
			var reference []byte
			if many > 0 {
				reference = change(plain, k, many, uint64(i))
			}
			for m := range modes + 1 {
				allowed := AllModes
				if m < modes {
					allowed = Only(m)
				}
				container := encode(t, plain, reference, Options{Kind: k, Modes: allowed})
				fmt.Fprintf(&text, "%v %d %06b %d %016x\n", k, many, allowed, len(container), xxh3.Hash(container))
			}
		}
	}
	if *rewrite {
		if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || string(want) != text.String() {
		t.Error("the containers are not those of "+name, err)
	}
}
