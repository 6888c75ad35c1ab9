package difference

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/zeebo/xxh3"
)

// sign makes the checksum of the metadata right, so that mutations reach the rules behind it.
func sign(p []byte) {
	if len(p) < headerBytes+sumBytes {
		return
	}
	if end := binary.LittleEndian.Uint64(p[56:]); end >= headerBytes+sumBytes && end <= uint64(len(p)) {
		binary.LittleEndian.PutUint64(p[end-sumBytes:], xxh3.Hash(p[:end-sumBytes]))
	}
}

// wholeBase is the map of a base that has all bytes of the difference's regions.
func wholeBase(d *Difference) *Map {
	base := &Map{Checkpoint: d.Base, index: map[string]int{}}
	for i, r := range d.Regions {
		l := Located{Name: r.Name, Size: r.Size}
		if r.Size > 0 {
			l.Runs = []Run{{Checkpoint: d.Base}}
		}
		base.Regions, base.index[r.Name] = append(base.Regions, l), i
	}
	return base
}

// tryParse parses bytes that may be anything. Those accepted are the serialised form of what was read, resolve, and restore.
func tryParse(t *testing.T, p []byte) bool {
	d, err := Parse(p)
	if err != nil {
		if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrLimit) {
			t.Fatalf("an error without a kind: %v", err)
		}
		return false
	}
	again, err := d.Append(nil)
	if err != nil || !bytes.Equal(again, p) {
		t.Fatalf("it is read as %+v, which is written as\n%x (%v), not\n%x", d, again, err, p)
	}
	m, err := d.Locate(wholeBase(d))
	if err != nil {
		t.Fatalf("a valid difference does not resolve: %v", err)
	}
	for i := range m.Regions {
		l := &m.Regions[i]
		if l.Size > 1<<20 {
			continue
		}
		given := uint64(0)
		err := l.Read(0, make([]byte, l.Size), func(checkpoint uint32, offset uint64, part []byte) error {
			given += uint64(len(part))
			if checkpoint > d.Checkpoint || checkpoint == d.Checkpoint && offset+uint64(len(part)) > uint64(len(d.Data)) {
				t.Fatalf("a read of checkpoint %d at %d, of %d bytes", checkpoint, offset, len(part))
			}
			return nil
		})
		if err != nil || given > l.Size {
			t.Fatalf("region %d: %v, %d of %d bytes read", i, err, given, l.Size)
		}
	}
	return true
}

func samples() [][]byte {
	var list [][]byte
	for m := Full; m <= Runs; m++ {
		text, err := sample(m).Append(nil)
		if err != nil {
			panic(err)
		}
		list = append(list, text)
	}
	return list
}

// Every value of every byte of the metadata, with the right checksum, is refused or read as it is.
func TestMutations(t *testing.T) {
	accepted := 0
	for _, text := range samples() {
		for at := range int(binary.LittleEndian.Uint64(text[56:])) - sumBytes {
			for v := range 256 {
				p := bytes.Clone(text)
				p[at] = byte(v)
				sign(p)
				if tryParse(t, p) {
					accepted++
				}
			}
		}
		for n := range text {
			p := bytes.Clone(text[:n])
			if tryParse(t, p) {
				t.Errorf("cut at %d it was accepted", n)
			}
			sign(p)
			tryParse(t, p)
		}
		if tryParse(t, append(bytes.Clone(text), 0)) {
			t.Error("with a byte more it was accepted")
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d mutations were accepted: is the checksum right?", accepted)
	}
}

// One flipped bit of the metadata is found by its checksum.
func TestChecksumOfMetadata(t *testing.T) {
	for _, text := range samples() {
		for bit := range 8 * int(binary.LittleEndian.Uint64(text[56:])) {
			p := bytes.Clone(text)
			p[bit/8] ^= 1 << (bit % 8)
			if _, err := Parse(p); !errors.Is(err, ErrFormat) {
				t.Fatalf("bit %d: %v", bit, err)
			}
		}
	}
}

// Counts that the bytes cannot hold are refused before anything of their size is allocated.
func TestAbsurdCounts(t *testing.T) {
	for _, text := range samples() {
		for _, field := range []struct{ at, width int }{{24, 4}, {28, 4}, {32, 8}, {40, 8}, {48, 8}, {56, 8}, {72, 8}} {
			for _, v := range []uint64{1 << 31, 1<<32 - 1, 1 << 40, 1 << 60, 1 << 61, 1<<63 - 1, 1<<64 - 1} {
				p := bytes.Clone(text)
				if field.width == 4 {
					binary.LittleEndian.PutUint32(p[field.at:], uint32(v))
				} else {
					binary.LittleEndian.PutUint64(p[field.at:], v)
				}
				if bytes.Equal(p, text) || uint32(v) == 0 && field.width == 4 {
					continue
				}
				sign(p)
				if n := testing.AllocsPerRun(1, func() { _, _ = Parse(p) }); n > 50 {
					t.Errorf("field at %d = %#x: %v allocations", field.at, v, n)
				}
				if _, err := Parse(p); err == nil {
					t.Errorf("field at %d = %#x was accepted", field.at, v)
				}
			}
		}
	}
}

func TestParseMetadata(t *testing.T) {
	for _, text := range samples() {
		want, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, n, err := ParseMetadata(text[:want.MetadataBytes()])
		if err != nil || n != uint64(len(want.Data)) || got.Data != nil {
			t.Fatalf("%v: %d bytes of first occurrences", err, n)
		}
		a, errA := got.Locate(wholeBase(want))
		b, errB := want.Locate(wholeBase(want))
		if errA != nil || errB != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%v: %+v, want %+v (%v)", errA, a, b, errB)
		}
		got.Data = want.Data
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range samples() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		tryParse(t, p)
		q := bytes.Clone(p)
		sign(q)
		tryParse(t, q)
	})
}

func FuzzParseMap(f *testing.F) {
	m, err := sample(Runs).Resolve(baseMap())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(m.Append(nil), uint64(1))
	f.Add(m.Without(8).Append(nil), uint64(2))
	f.Fuzz(func(t *testing.T, p []byte, seed uint64) {
		if len(p) >= mapHeaderBytes+sumBytes {
			p = bytes.Clone(p)
			binary.LittleEndian.PutUint64(p[len(p)-sumBytes:], xxh3.Hash(p[:len(p)-sumBytes]))
		}
		m, err := ParseMap(p)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(m.Append(nil), p) {
			t.Fatalf("%+v is not written as it was read", m)
		}
		random := rand.New(rand.NewPCG(seed, 1))
		for i := range m.Regions {
			l := &m.Regions[i]
			if l.Size == 0 {
				continue
			}
			from := random.Uint64N(l.Size)
			n := random.Uint64N(min(l.Size-from, 1<<16) + 1)
			err := l.Read(from, make([]byte, n), func(uint32, uint64, []byte) error { return nil })
			if err != nil && !errors.Is(err, ErrVoid) {
				t.Fatal(err)
			}
		}
	})
}
