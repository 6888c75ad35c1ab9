package catalog

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"velocpy/gocore/model"
)

// body builds an item's body from numbers of given types, and texts.
func body(parts ...any) []byte {
	var p []byte
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			p = append(p, part...)
		case []byte:
			p = append(p, part...)
		default:
			p, _ = binary.Append(p, binary.LittleEndian, part)
		}
	}
	return p
}

// defined is a State with history 1, whose key 5 has serial 10, and layout 1, with one region of two leaves.
func defined(t testing.TB) *State {
	return applied(t, encode(kindHistory, body(uint32(1), "h")), encode(kindLayout, layoutOf(300000, 0, 300000)),
		encode(kindLayout, body(uint32(2), uint32(0), uint64(MostSlot), uint32(0), uint32(0))), putOf(10, 0, model.NumberKey(5), one, uint32(0)))
}

func layoutOf(slot uint64, spans ...uint64) []byte {
	return body(uint32(1), uint32(0), slot, uint32(len(spans)/2), uint32(0), spans)
}

// one is an alignment, and the one extent that layout 1 needs.
var one = body(uint32(64), uint32(1), []uint64{1, 0, 303104})

func putOf(serial uint64, flags uint8, k model.Key, rest ...any) []byte {
	return encode(kindPut, body(uint32(1), uint32(1), serial, uint8(0), flags, appendKey(nil, k), body(rest...)))
}

// encodedOf is a put of layout 1 with a content of containers; the extents have so many bytes.
func encodedOf(serial uint64, flags uint8, bytes uint64, rest ...any) []byte {
	key := appendKey(nil, model.NumberKey(5))
	return encode(kindPut, body(uint32(1), uint32(1), serial, uint8(1), flags, key, uint32(64), uint32(1), []uint64{1, 0, bytes}, body(rest...)))
}

// An encoded put has the bytes that docs/format.md says.
func TestBytesOfEncodedPut(t *testing.T) {
	wants := slices.Concat(encode(kindHistory, body(uint32(9), "wave")),
		encode(kindLayout, body(uint32(9), uint32(0), uint64(400000), uint32(3), uint32(0), []uint64{0, 300000, 300000, 0, 300032, 99968}, "uv")),
		encode(kindPut, body(uint32(9), uint32(9), uint64(1), uint8(1), uint8(7), appendKey(nil, model.NumberKey(5)), uint64(1764057600123456789),
			uint32(0), uint32(2), []uint64{1, 0, 4096, 2, 0, 4096}, []uint64{1, 2, 3}, []uint64{4, 5},
			uint64(262144), uint32(3), []uint32{4096, 96, 208}, uint32(1), "m")))
	if got := encodedPut(); !slices.Equal(got, wants) {
		t.Errorf("%x, not %x", got, wants)
	}
}

// hostile is a record that a State refuses.
type hostile struct {
	why    string // expected error text; empty: the record is accepted
	record []byte
}

func TestHostileRecords(t *testing.T) {
	five := model.NumberKey(5)
	const most = math.MaxUint64
	for _, c := range append(hostileDifferences(), []hostile{
		{"", nil},
		{"", putOf(11, 0, five, one, uint32(0))},
		{"", putOf(11, 3, five, one, []uint64{1, 2, 3}, uint32(0))},
		{"", putOf(11, 2, five, one, []uint64{2, 3}, uint32(0))},
		{"", putOf(11, 0, five, uint32(0), uint32(2), []uint64{most, math.MaxInt64 + 1 - 8192, 4096, 1, 0, 299008}, uint32(0))},
		{"", encode(255, []byte("anything"))},
		{"", encodedOf(11, 0, 4096, uint64(262144), uint32(2), []uint32{96, 96}, uint32(0))},
		{"", encodedOf(11, 3, 4096, []uint64{1, 2, 3}, uint64(1<<30), uint32(1), []uint32{4096}, uint32(1), "m")},
		{"", encodedOf(11, 0, 303104, uint64(524288), uint32(1), []uint32{300288}, uint32(0))},
		{"", encodedOf(11, 0, 303104, uint64(262144), uint32(2), []uint32{262384, 37968}, uint32(0))},
		{"", encode(kindDrop, body(uint32(77), uint32(0), uint64(1), appendKey(nil, five)))},
		{"", encode(kindClear, body(uint32(77), uint32(0), uint64(1)))},
		{"", encode(kindHistory, body(uint32(1), "h"))},
		{"", encode(kindLayout, layoutOf(300000, 0, 300000))},
		{"", encode(kindHistory, body(uint32(0), strings.Repeat("n", MostName)))},

		{"are no item", []byte{3, 0, 0}},
		{"reserved bytes", []byte{200, 0, 0, 1, 0, 0, 0, 0}},
		{"0 bytes of 4294967295", []byte{3, 0, 0, 0, 255, 255, 255, 255}},
		{"kind 0", encode(0, nil)},
		{"kind 9", encode(9, nil)},
		{"kind 127", encode(127, nil)},

		{"too short", encode(kindHistory, []byte{1, 0, 0})},
		{"65537 bytes", encode(kindHistory, body(uint32(2), strings.Repeat("n", MostName+1)))},
		{`history 1 is "h", not "i"`, encode(kindHistory, body(uint32(1), "i"))},
		{`history "h" is 1, not 2`, encode(kindHistory, body(uint32(2), "h"))},

		{"too short", encode(kindLayout, make([]byte, 23))},
		{"too short for 4294967295 regions", encode(kindLayout, body(uint32(9), uint32(0), uint64(1), uint32(math.MaxUint32), uint32(0), "text"))},
		{"reserved field is 0x1", encode(kindLayout, body(uint32(9), uint32(1), uint64(1), uint32(0), uint32(0)))},
		{"reserved field is 0x2", encode(kindLayout, body(uint32(9), uint32(0), uint64(1), uint32(0), uint32(2)))},
		{"a slot has", encode(kindLayout, layoutOf(MostSlot+1))},
		{"a slot has", encode(kindLayout, layoutOf(most))},
		{"begins at 5, before 6", encode(kindLayout, layoutOf(100, 0, 6, 5, 1))},
		{"begins at 0, before 6", encode(kindLayout, layoutOf(100, 5, 1, 0, 1))},
		{"beyond the slot", encode(kindLayout, layoutOf(100, 99, 2))},
		{"beyond the slot", encode(kindLayout, layoutOf(100, 101, 0))},
		{"beyond the slot", encode(kindLayout, layoutOf(100, 1, most))},
		{"beyond the slot", encode(kindLayout, layoutOf(100, most, 1))},
		{"text has", encode(kindLayout, body(layoutOf(0), make([]byte, MostText+1)))},
		{"layout 1 is another one", encode(kindLayout, layoutOf(300000, 0, 299999))},

		{"too short", encode(kindPut, make([]byte, 17))},
		{"no history 7", encode(kindPut, body(uint32(7), uint32(1), uint64(11), uint16(0), appendKey(nil, five), one, uint32(0)))},
		{"no layout 7", encode(kindPut, body(uint32(1), uint32(7), uint64(11), uint16(0), appendKey(nil, five), one, uint32(0)))},
		{"serial 10 is to replace 10", putOf(10, 0, five, one, uint32(0))},
		{"serial 9 is to replace 10", putOf(9, 0, five, one, uint32(0))},
		{"serial 18446744073709551615 is too large", putOf(most, 0, five, one, uint32(0))},
		{"serial 4611686018427387905 is too large", putOf(MostSerial+1, 0, five, one, uint32(0))},
		{"flags 0x8", putOf(11, 8, five, one, uint32(0))},
		{"0 is no time", putOf(11, 4, five)},
		{"0 is no time", putOf(11, 4, five, uint32(1))},
		{"0 is no time", putOf(11, 4, five, uint64(0), one, uint32(0))},
		{"9223372036854775808 is no time", putOf(11, 4, five, uint64(math.MaxInt64+1), one, uint32(0))},
		{"key is of kind 2", encode(kindPut, body(uint32(1), uint32(1), uint64(11), uint16(0), uint8(2), uint8(0), one))},
		{"reserved byte is 1", encode(kindPut, body(uint32(1), uint32(1), uint64(11), uint16(0), uint8(0), uint8(1), uint64(5), one))},
		{"ends in a key", encode(kindPut, body(uint32(1), uint32(1), uint64(11), uint16(0), uint8(0), uint8(0), uint32(5)))},
		{"key has 4294967295 bytes", encode(kindPut, body(uint32(1), uint32(1), uint64(11), uint16(0), uint8(1), uint8(0), uint32(math.MaxUint32), "x"))},
		{"key has 65537 bytes", putOf(11, 0, model.TextKey(strings.Repeat("k", MostName+1)), one, uint32(0))},
		{"too short", putOf(11, 0, five, uint32(64), uint32(math.MaxUint32), []uint64{1, 0, 303104}, uint32(0))},
		{"too short", putOf(11, 1, five, one, uint32(0))},
		{"too short", putOf(11, 2, five, one, uint64(1), uint32(0))},
		{"left over", putOf(11, 0, five, one, uint64(1), uint32(0), uint64(0))},
		{"left over", putOf(11, 0, five, one, uint32(0), uint8(0))},
		{"too short", putOf(11, 0, five, one, uint32(2), "x")},
		{"meta has 4294967295 bytes", putOf(11, 0, five, one, uint32(math.MaxUint32), "x")},
		{"meta has 16777217 bytes", putOf(11, 0, five, one, uint32(MostText+1), make([]byte, MostText+1))},
		{"in file 0", putOf(11, 0, five, uint32(0), uint32(1), []uint64{0, 0, 303104}, uint32(0))},
		{"whole blocks", putOf(11, 0, five, uint32(0), uint32(1), []uint64{1, 1, 303104}, uint32(0))},
		{"whole blocks", putOf(11, 0, five, uint32(0), uint32(1), []uint64{1, 0, 300000}, uint32(0))},
		{"whole blocks", putOf(11, 0, five, uint32(0), uint32(2), []uint64{1, 0, 303104, 1, 0, 0}, uint32(0))},
		{"beyond any file", putOf(11, 0, five, uint32(0), uint32(1), []uint64{1, most - 4095, 303104}, uint32(0))},
		{"beyond any file", putOf(11, 0, five, uint32(0), uint32(1), []uint64{1, math.MaxInt64 + 1 - 4096, 303104}, uint32(0))},
		{"more than 303104", putOf(11, 0, five, uint32(0), uint32(1), []uint64{1, 0, 307200}, uint32(0))},
		{"more than 303104", putOf(11, 0, five, uint32(0), uint32(3), []uint64{1, 0, 1 << 62, 1, 0, 1 << 62, 1, 0, 1 << 62}, uint32(0))},
		{"have 299008 bytes, not 303104", putOf(11, 0, five, uint32(0), uint32(1), []uint64{1, 0, 299008}, uint32(0))},
		{"have 0 bytes", putOf(11, 0, five, uint32(0), uint32(0), uint32(0))},

		{"too short", encodedOf(11, 0, 4096, uint32(262144))},
		{"too short", encodedOf(11, 0, 4096, uint64(262144), uint32(2), uint32(96))},
		{"too short", encodedOf(11, 0, 4096, uint64(262144), uint32(math.MaxUint32), []uint32{96, 96}, uint32(0))},
		{"left over", encodedOf(11, 0, 4096, uint64(262144), uint32(2), []uint32{96, 96}, uint32(0), uint8(0))},
		{"flags 0x8", encodedOf(11, 8, 4096, uint64(262144), uint32(2), []uint32{96, 96}, uint32(0))},
		{"0 is no time", encode(kindPut, body(uint32(1), uint32(1), uint64(11), uint8(1), uint8(4), appendKey(nil, five), uint64(0)))},
		{"containers of 0 bytes", encodedOf(11, 0, 4096, uint64(0), uint32(2), []uint32{96, 96}, uint32(0))},
		{"containers of 262145 bytes", encodedOf(11, 0, 4096, uint64(262145), uint32(2), []uint32{96, 96}, uint32(0))},
		{"containers of 131072 bytes", encodedOf(11, 0, 4096, uint64(131072), uint32(3), []uint32{96, 96, 96}, uint32(0))},
		{"containers of 1074003968 bytes", encodedOf(11, 0, 4096, uint64(1<<30+262144), uint32(1), []uint32{96}, uint32(0))},
		{"containers of -262144 bytes", encodedOf(11, 0, 4096, uint64(most-262143), uint32(1), []uint32{96}, uint32(0))},
		{"1 containers", encodedOf(11, 0, 4096, uint64(262144), uint32(1), []uint32{96}, uint32(0))},
		{"3 containers", encodedOf(11, 0, 4096, uint64(262144), uint32(3), []uint32{96, 96, 96}, uint32(0))},
		{"2 containers", encodedOf(11, 0, 4096, uint64(524288), uint32(2), []uint32{96, 96}, uint32(0))},
		{"0 containers", encodedOf(11, 0, 4096, uint64(262144), uint32(0), uint32(0))},
		{"container 1 of 37856 plain bytes has 0 bytes", encodedOf(11, 0, 4096, uint64(262144), uint32(2), []uint32{96, 0}, uint32(0))},
		{"has 100 bytes", encodedOf(11, 0, 4096, uint64(262144), uint32(2), []uint32{96, 100}, uint32(0))},
		{"has 262400 bytes", encodedOf(11, 0, 266240, uint64(262144), uint32(2), []uint32{262400, 96}, uint32(0))},
		{"has 37984 bytes", encodedOf(11, 0, 40960, uint64(262144), uint32(2), []uint32{96, 37984}, uint32(0))},
		{"has 4294967280 bytes", encodedOf(11, 0, 4096, uint64(262144), uint32(2), []uint32{math.MaxUint32 - 15, 96}, uint32(0))},
		{"more than 4096", encodedOf(11, 0, 8192, uint64(262144), uint32(2), []uint32{4000, 96}, uint32(0))},
		{"have 4096 bytes, not 8192", encodedOf(11, 0, 4096, uint64(262144), uint32(2), []uint32{4096, 16}, uint32(0))},
		{"meta has 4294967295 bytes", encodedOf(11, 0, 4096, uint64(262144), uint32(2), []uint32{96, 96}, uint32(math.MaxUint32))},

		{"too short", encode(kindDrop, make([]byte, 15))},
		{"ends in a key", encode(kindDrop, body(uint32(1), uint32(0), uint64(11)))},
		{"reserved field", encode(kindDrop, body(uint32(1), uint32(1), uint64(11), appendKey(nil, five)))},
		{"left over", encode(kindDrop, body(uint32(1), uint32(0), uint64(11), appendKey(nil, five), uint8(0)))},
		{"too large", encode(kindDrop, body(uint32(1), uint32(0), uint64(most), appendKey(nil, five)))},
		{"too short", encode(kindClear, make([]byte, 15))},
		{"reserved field", encode(kindClear, body(uint32(1), uint32(1), uint64(11)))},
		{"left over", encode(kindClear, body(uint32(1), uint32(0), uint64(11), uint8(0)))},
		{"too large", encode(kindClear, body(uint32(1), uint32(0), uint64(most)))},
		{"too short for 0 keys", encode(kindRetention, make([]byte, 27))},
		{"no history 7", encode(kindRetention, body(uint32(7), uint32(0), uint64(1), uint64(0), uint32(0)))},
		{"too short for 4294967295 keys", encode(kindRetention, body(uint32(1), uint32(0), uint64(1), uint64(0), uint32(math.MaxUint32), make([]byte, 100)))},
		{"flags 0x8", encode(kindRetention, body(uint32(1), uint32(8), uint64(1), uint64(0), uint32(0)))},
		{"no number is named", encode(kindRetention, body(uint32(1), uint32(5), uint64(1), uint64(0), uint32(0), uint64(1), uint32(1), uint32(0)))},
		{"too short for 0 names", encode(kindRetention, body(uint32(1), uint32(2), uint64(1), uint64(0), uint32(0), uint64(1)))},
		{"too short for 2 names", encode(kindRetention, body(uint32(1), uint32(2), uint64(1), uint64(0), uint32(0), uint64(1), uint32(2), uint32(0)))},
		{"too short", encode(kindRetention, body(uint32(1), uint32(2), uint64(1), uint64(0), uint32(0), uint64(1), uint32(1), uint32(2), "x"))},
		{"behind 0 names", encode(kindRetention, body(uint32(1), uint32(2), uint64(1), uint64(0), uint32(0), uint64(1), uint32(0)))},
		{"behind 1001 names", encode(kindRetention, body(uint32(1), uint32(2), uint64(1), uint64(0), uint32(0), uint64(1), uint32(1001), make([]byte, 4004)))},
		{"the best 0", encode(kindRetention, body(uint32(1), uint32(2), uint64(1), uint64(0), uint32(0), uint64(0), uint32(1), uint32(0)))},
		{"more than 65536 bytes", encode(kindRetention, body(uint32(1), uint32(2), uint64(1), uint64(0), uint32(0), uint64(1), uint32(1), uint32(65537), make([]byte, 65537)))},
		{"left over", encode(kindRetention, body(uint32(1), uint32(2), uint64(1), uint64(0), uint32(0), uint64(1), uint32(1), uint32(1), "xy"))},
		{"left over", encode(kindRetention, body(uint32(1), uint32(1), uint64(1), uint64(0), uint32(0), uint8(0)))},
		{"too short", encode(kindSerial, make([]byte, 7))},
		{"left over", encode(kindSerial, make([]byte, 9))},
		{"too large", encode(kindSerial, body(uint64(most)))},
		{"too short", encode(kindCommits, make([]byte, 7))},
		{"left over", encode(kindCommits, make([]byte, 9))},
	}...) {
		s := defined(t)
		before := ask(t, s)
		good := putOf(11, 0, model.TextKey("before"), one, uint32(0))
		err := s.Apply(append(good, c.record...))
		if c.why == "" {
			if err != nil {
				t.Errorf("%x: %v", c.record, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.why) || !strings.HasPrefix(err.Error(), "item 1, at byte ") {
			t.Errorf("%.100x: %v, not for %q", c.record, err, c.why)
		}
		versions := strings.Contains(c.why, "kind") || strings.Contains(c.why, "flags")
		if errors.Is(err, ErrVersion) != versions || errors.Is(err, ErrMalformed) == versions {
			t.Errorf("%v is of the wrong sort", err)
		}
		same(t, ask(t, s), before)
	}
}

// Sums beyond 64 bits are reported as the largest number, and are right again afterwards.
func TestHugeHistory(t *testing.T) {
	s := defined(t)
	for n := range uint64(20) {
		must(t, s.Apply(encode(kindPut, body(uint32(1), uint32(2), 20+n, uint16(0), appendKey(nil, model.NumberKey(int64(100+n))),
			uint32(0), uint32(1), []uint64{1, 0, MostSlot}, uint32(0)))))
	}
	if got := s.Histories()[0].Bytes; got != math.MaxInt64 {
		t.Errorf("%d bytes", got)
	}
	for n := range uint64(20) {
		must(t, s.Apply(encode(kindDrop, body(uint32(1), uint32(0), 20+n, appendKey(nil, model.NumberKey(int64(100+n)))))))
	}
	if got := s.Histories()[0].Bytes; got != 303104 {
		t.Errorf("%d bytes", got)
	}
}

// Records with large claims are refused without much memory, and small records take little.
func TestBombsTakeNoMemory(t *testing.T) {
	var crowd []byte
	for n := range uint32(20000) {
		crowd = append(crowd, encode(kindHistory, body(n+100, n))...)
	}
	keys := make([]byte, 28, 28+6e5)
	keys[0] = 1
	binary.LittleEndian.PutUint32(keys[24:], 1e5)
	for range 100000 {
		keys = append(keys, 1, 0, 0, 0, 0, 0)
	}
	for name, record := range map[string][]byte{
		"regions":    encode(kindLayout, body(uint32(9), uint32(0), uint64(1), uint32(math.MaxUint32), uint32(0))),
		"containers": encodedOf(11, 0, 4096, uint64(262144), uint32(math.MaxUint32), make([]byte, 1<<16)),
		"too many":   encodedOf(11, 0, 4096, uint64(262144), uint32(1<<14), make([]byte, 1<<16), uint32(0)),
		"sources":    differenceOf(0, uint32(math.MaxUint32), make([]byte, 1<<16)),
		"in extents": differenceOf(0, uint32(1), uint32(0), []uint64{0, 1}, uint32(math.MaxUint32), make([]byte, 1<<16)),
		"extents":    putOf(11, 0, model.NumberKey(1), uint32(64), uint32(math.MaxUint32), []uint64{1, 0, 303104}),
		"a row":      nil,
		"keys":       encode(kindRetention, keys), "histories": crowd,
	} {
		s := defined(t)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if record == nil {
			s = defined(t) // its first row is measured
		}
		_ = s.Apply(record)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<10+uint64(len(record))*30 {
			t.Errorf("%s: %d bytes were allocated for a record of %d", name, took, len(record))
		}
		runtime.KeepAlive(s)
	}
}
