package description

import (
	"bytes"
	"encoding/binary"
	stdjson "encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"velocpy/gocore/base/allocs"
	"velocpy/gocore/model"
)

var (
	executions = flag.Int("executions", 300_000, "how many hostile descriptions TestHostile makes")
	seed       = flag.Uint64("seed", 0, "of TestHostile; 0: another one each time")
)

// region is a region that a test describes.
type region struct {
	name    string
	library uint8
	place   int32
	dtype   string
	item    int64
	shape   []int64
	order   uint8
	listed  []byte
	offset  int64
	bytes   int64
}

// described is a description in parts, so that a test can corrupt each of them.
type described struct {
	magic, version, sequence uint8
	count                    uint32
	regions                  []region
	structure                string
	behind                   string
	slot                     int64
	spans                    []model.Span
}

func (d *described) layout() *model.Layout {
	p := []byte{d.magic, d.version, d.sequence}
	p = binary.LittleEndian.AppendUint32(p, d.count)
	for _, r := range d.regions {
		p = binary.LittleEndian.AppendUint32(p, uint32(len(r.name)))
		p = append(append(p, r.name...), r.library)
		p = binary.LittleEndian.AppendUint32(p, uint32(r.place))
		p = binary.LittleEndian.AppendUint32(p, uint32(len(r.dtype)))
		p = append(p, r.dtype...)
		p = binary.LittleEndian.AppendUint64(p, uint64(r.item))
		p = append(p, uint8(len(r.shape)))
		for _, n := range r.shape {
			p = binary.LittleEndian.AppendUint64(p, uint64(n))
		}
		p = append(append(p, r.order), r.listed...)
		p = binary.LittleEndian.AppendUint64(p, uint64(r.offset))
		p = binary.LittleEndian.AppendUint64(p, uint64(r.bytes))
	}
	p = append(p, d.structure...)
	return &model.Layout{Slot: d.slot, Spans: d.spans, Text: string(append(p, d.behind...))}
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// dtype makes a valid dtype, and its size.
func dtype(r *rand.Rand, nested int) (text string, size int64) {
	kind := r.IntN(10)
	if nested == 0 && kind == 8 || nested > 3 && kind > 7 {
		kind = 0
	}
	switch kind {
	case 0, 1, 2:
		n := pick[int64](r, 2, 4, 8)
		return fmt.Sprintf("%s%s%d", pick(r, "<", ">"), pick(r, "i", "u", "f"), n), n
	case 3:
		return "|" + pick(r, "b1", "i1", "u1"), 1
	case 4:
		n := int64(r.IntN(300))
		if r.IntN(2) == 0 {
			return fmt.Sprintf("|%s%d", pick(r, "S", "V"), n), n
		}
		return fmt.Sprintf("<U%d", n), 4 * n
	case 5:
		return pick(r, "<", ">") + pick(r, "M8", "m8") + pick(r, "", "[D]", "[ns]", "[25us]", "[2147483647as]"), 8
	case 6:
		name := pick(r, "bfloat16", "complex32", "float8_e4m3fn", "int4")
		return "=" + name, named[name]
	case 7:
		n := pick[int64](r, 8, 16, 32)
		return fmt.Sprintf("<c%d", n), n
	case 8:
		base, size := dtype(r, nested+1)
		a, b := int64(r.IntN(4)), int64(r.IntN(4))
		quoted, _ := stdjson.Marshal(base)
		return fmt.Sprintf("[%s, [%d, %d]]", quoted, a, b), size * a * b
	}
	names, formats, offsets, titles := []string{}, []string{}, []int64{}, []any{}
	for i := range r.IntN(4) {
		text, n := dtype(r, nested+1)
		size += int64(r.IntN(9))
		names, formats, offsets = append(names, fmt.Sprint("f", i)), append(formats, text), append(offsets, size)
		titles = append(titles, pick[any](r, nil, nil, fmt.Sprint("t", i), i))
		size += n
	}
	size += int64(r.IntN(9))
	all, _ := stdjson.Marshal(map[string]any{"names": names, "formats": formats, "offsets": offsets, "titles": titles, "itemsize": size, "aligned": r.IntN(2) == 0})
	return string(all), size
}

// right makes a valid description.
func right(r *rand.Rand) *described {
	d := &described{magic: magic, version: version, sequence: uint8(r.IntN(3)), count: uint32(r.IntN(5))}
	for i := range d.count {
		x := region{library: pick[uint8](r, 0, 0, 2, 3, 4), place: int32(r.IntN(3)), order: uint8(r.IntN(3)), offset: (d.slot + int64(r.IntN(100)) + 63) / 64 * 64}
		if d.sequence != sequenceKind {
			x.name = fmt.Sprint(pick(r, "", "ä", "\xed\xa0\x80", "u\x00"), i)
		}
		x.dtype, x.item = dtype(r, 0)
		x.bytes = x.item
		for range r.IntN(4) {
			n := int64(r.IntN(5))
			x.shape, x.bytes = append(x.shape, n), x.bytes*n
		}
		if x.order == orderListed {
			for _, axis := range r.Perm(len(x.shape)) {
				x.listed = append(x.listed, byte(axis))
			}
		}
		d.slot = x.offset + x.bytes
		d.regions, d.spans = append(d.regions, x), append(d.spans, model.Span{Offset: x.offset, Bytes: x.bytes})
	}
	if d.sequence == treeKind {
		d.structure = structured(r, int(d.count))
	}
	return d
}

// structured makes the structure of a tree with that many arrays.
func structured(r *rand.Rand, arrays int) string {
	var nodes []string
	for range arrays {
		nodes = append(nodes, `"array"`)
	}
	for range r.IntN(4) {
		nodes = slices.Insert(nodes, r.IntN(len(nodes)+1), pick(r, `"value"`, `["list"]`, `["dict"]`, ` [ "tuple" ] `))
	}
	for range r.IntN(5) {
		from := r.IntN(len(nodes) + 1)
		to := from + r.IntN(len(nodes)-from+1)
		kind := pick(r, "list", "tuple", "dict", "ordered")
		container := []string{`"` + kind + `"`}
		for i, node := range nodes[from:to] {
			if kind == "dict" || kind == "ordered" {
				container = append(container, pick(r, fmt.Sprint(i-2), fmt.Sprintf(`"%d"`, i), fmt.Sprintf(`"\\ud800%d"`, i)))
			}
			container = append(container, node)
		}
		nodes = slices.Replace(nodes, from, to, "["+strings.Join(container, ",")+"]")
	}
	return "[" + strings.Join(append([]string{`"list"`}, nodes...), ",") + "]"
}

var hugeNumbers = []int64{-1, math.MinInt64, math.MaxInt64, 1 << 31, 1 << 50, 1 << 62, 1<<63 - 4096}

// worse corrupts one part of a description; false if it has no part of that kind.
func worse(r *rand.Rand, d *described) bool {
	switch r.IntN(6) {
	case 0:
		d.magic ^= 1 << r.IntN(8)
		return true
	case 1:
		d.version ^= 1 << r.IntN(8)
		return true
	case 2:
		d.sequence += 3
		return true
	case 3:
		d.count = pick(r, d.count+1, d.count+1<<20, math.MaxUint32)
		return true
	case 4:
		d.behind = "x"
		return true
	case 5:
		if d.sequence != treeKind {
			break
		}
		d.structure = pick(r, d.structure[1:], d.structure[:len(d.structure)-1], d.structure+d.structure, `"array"`, `["list",`+d.structure+`,"array"]`, `["set",`+d.structure+"]", "",
			`["list",`+d.structure+`,"other"]`, `["list",`+d.structure+",1]", `["dict","a",`+d.structure+`,"b"]`, `["dict","a",`+d.structure+`,"\u0061","value"]`, `["dict",-0,`+d.structure+"]",
			`["dict",01,`+d.structure+"]", `["dict",1.5,`+d.structure+"]", `["dict",null,`+d.structure+"]", `["dict",`+d.structure+`,"a"]`, "["+d.structure+"]", "[]",
			strings.Repeat(`["list",`, mostTreeDepth)+d.structure+strings.Repeat("]", mostTreeDepth), d.structure+strings.Repeat(" ", mostTreeBytes), d.structure+"\xff")
		return true
	}
	if len(d.regions) == 0 {
		return false
	}
	x := &d.regions[r.IntN(len(d.regions))]
	switch r.IntN(12) {
	case 0:
		x.name += "\xff"
	case 1:
		if d.sequence == 1 {
			x.name = "u"
		} else if len(d.regions) == 1 {
			return false
		} else {
			d.regions[0].name = d.regions[1].name
		}
	case 2:
		x.library = 5 + uint8(r.IntN(250))
	case 3:
		x.place = pick[int32](r, -1, math.MinInt32, math.MaxInt32, mostPlace+1)
	case 4:
		x.dtype = pick(r, "|O", "O", "|O8", "<O8", "T", "|T16", "", "<", "<f", "<f3", "f8", "=F8", "|f8", "<b1", "<M8[]", "<M8[0s]", "<M8[x]", "<i8 ", "<i08", "<U-1", "|V2147483648",
			"=", "=__import__", "=Float", "=a.b", "i4,f8", "float64", `["|O", [1]]`, `["<f8", [2]]`, "[]", "{", "{}", strings.Repeat("[", 100_000), "<f8\x00", "\xff",
			`{"aligned":false,"formats":["|O"],"itemsize":8,"names":["a"],"offsets":[0],"titles":[null]}`,
			`{"aligned":false,"formats":["<f8"],"itemsize":7,"names":["a"],"offsets":[0],"titles":[null]}`,
			`{"aligned":false,"formats":["<f8"],"itemsize":8,"names":["a"],"offsets":[-1],"titles":[null]}`,
			`{"aligned":false,"formats":["<f8","<f8"],"itemsize":16,"names":["a","a"],"offsets":[0,8],"titles":[null,null]}`,
			`{"aligned":false,"formats":["<f8"],"itemsize":8,"names":["a"],"offsets":[0],"titles":["a"]}`,
			`{"aligned":false,"formats":["[\"|O\", [1]]"],"itemsize":8,"names":["a"],"offsets":[0],"titles":[null]}`,
			`{"aligned":false,"formats":["<f8"],"itemsize":8,"names":["a"],"offsets":[0]}`,
			`{"aligned":false,"formats":["<f8"],"itemsize":8,"names":["a"],"names":["a"],"offsets":[0],"titles":[null]}`)
	case 5:
		x.item = pick(r, append(hugeNumbers, x.item+1, x.item-1)...)
	case 6:
		x.shape = append(x.shape, pick[int64](r, -1, math.MinInt64))
		x.order = orderC
		if r.IntN(2) == 0 { // that many elements without bytes
			*x = region{name: x.name, dtype: "|V0", shape: []int64{1 << 31}, offset: x.offset}
			for i := range d.regions {
				if x == &d.regions[i] {
					d.spans[i].Bytes = 0
				}
			}
		}
	case 7:
		x.shape, x.order, x.listed = append(x.shape, 3, math.MaxInt64), orderC, nil
		if x.item == 0 || x.bytes == 0 && x.library == torch {
			return false
		}
	case 8:
		x.order = 3 + uint8(r.IntN(250))
	case 9:
		if x.order != orderListed || len(x.listed) < 2 {
			return false
		}
		x.listed[0] = pick(r, x.listed[1], byte(len(x.listed)), 255)
	case 10:
		x.offset += pick[int64](r, 1, -1, 64, math.MinInt64, 1<<50)
	case 11:
		x.bytes = pick(r, append(hugeNumbers, x.bytes+1, x.bytes-1)...)
	}
	return true
}

// inside checks an accepted description in another way: each region's elements, of the size of their dtype, fill its span exactly.
func inside(t *testing.T, l *model.Layout) {
	t.Helper()
	p := []byte(l.Text[7:])
	number := func(bytes int) (n uint64) {
		for i := range bytes {
			n |= uint64(p[i]) << (8 * i)
		}
		p = p[bytes:]
		return n
	}
	for _, span := range l.Spans {
		p = p[number(4):]
		library := number(1)
		number(4)
		n := number(4)
		dtype := string(p[:n])
		p = p[n:]
		item := number(8)
		if strings.ContainsAny(dtype[:min(2, len(dtype))], "OT") {
			t.Fatalf("%q is accepted", dtype)
		}
		total := new(big.Int).SetUint64(item)
		axes := int(number(1))
		for range axes {
			total.Mul(total, new(big.Int).SetUint64(number(8)))
		}
		if number(1) == orderListed {
			p = p[axes:]
		}
		if span.Offset%64 != 0 || number(8) != uint64(span.Offset) || number(8) != uint64(span.Bytes) || !total.IsInt64() || total.Int64() != span.Bytes || library > newest {
			t.Fatalf("%d bytes of %q at %d are accepted as %v", item, dtype, span.Offset, total)
		}
	}
	if l.Text[2] == treeKind {
		arrays, _ := leaves(t, p)
		if arrays != len(l.Spans) {
			t.Fatalf("%q is accepted for %d regions", p, len(l.Spans))
		}
		p = nil
	}
	if len(p) > 0 {
		t.Fatalf("%d bytes are left over", len(p))
	}
}

// leaves counts the leaves of a structure, read by Go's JSON.
func leaves(t *testing.T, structure []byte) (arrays, values int) {
	t.Helper()
	var root []any
	if err := stdjson.Unmarshal(structure, &root); err != nil && utf8.Valid(structure) {
		t.Fatalf("%q is accepted: %v", structure, err)
	} else if err != nil {
		return bytes.Count(structure, []byte(`"array"`)), 0 // a lone surrogate, which Go does not read
	}
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			keyed := node[0] == "dict" || node[0] == "ordered"
			for i, item := range node[1:] {
				if !keyed || i%2 == 1 {
					walk(item)
				}
			}
		case string:
			arrays += map[string]int{"array": 1}[node]
			values += map[string]int{"value": 1}[node]
		}
	}
	walk(root)
	return arrays, values
}

func judge(t *testing.T, l *model.Layout) error {
	t.Helper()
	err := Check(l)
	switch {
	case err == nil:
		inside(t, l)
	case !errors.Is(err, ErrMalformed):
		t.Fatalf("%q: %v", l.Text, err)
	}
	return err
}

// Valid descriptions are accepted, those with one corrupted part are refused. Accepted ones fit their layout, whatever the bytes are.
func TestHostile(t *testing.T) {
	from := *seed
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("%d executions, -seed %d", *executions, from)
	r := rand.New(rand.NewPCG(from, 0))
	for done := 0; done < *executions; {
		d := right(r)
		l := d.layout()
		if err := judge(t, l); err != nil {
			t.Fatalf("%+v: %v", d, err)
		}
		done++
		for range 50 { // changed, cut and recombined bytes cost less than a new description
			p := []byte(l.Text)
			for range 1 + r.IntN(3) {
				at := r.IntN(len(p))
				switch r.IntN(5) {
				case 0:
					p[at] ^= 1 << r.IntN(8)
				case 1:
					p[at] = pick[byte](r, 0, 1, 0x7f, 0xff, '"', '[', '{', 'O', '9')
				case 2:
					p = append(p[:at:at], p[min(len(p), at+1+r.IntN(9)):]...)
				case 3:
					p = append(p[:at:at], append([]byte(pick(r, "|O", "[[", "\\u", "00", `"`, "\xff\xff\xff\xff")), p[at:]...)...)
				default:
					if at+8 <= len(p) {
						binary.LittleEndian.PutUint64(p[at:], uint64(pick(r, hugeNumbers...)))
					}
				}
				if len(p) == 0 {
					break
				}
			}
			_ = judge(t, &model.Layout{Slot: l.Slot, Spans: l.Spans, Text: string(p)})
			done++
		}
		if worse(r, d) {
			if l := d.layout(); judge(t, l) == nil {
				t.Fatalf("accepted: %+v", d)
			}
			done++
		}
	}
}

func FuzzCheck(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 30 {
		l := right(r).layout()
		spans := []byte{}
		for _, s := range l.Spans {
			spans = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(spans, uint64(s.Offset)), uint64(s.Bytes))
		}
		f.Add(l.Text, spans)
	}
	f.Add("L\x02\x02\x00\x00\x00\x00"+`["dict","a",["ordered",-7,"value"],"b",["tuple",["list"],"value"]]`, []byte{})
	f.Add("L\x02\x02\x00\x00\x00\x00"+`["list","array"]`, []byte{})
	f.Fuzz(func(t *testing.T, text string, numbers []byte) {
		l := &model.Layout{Text: text}
		for ; len(numbers) >= 16; numbers = numbers[16:] {
			l.Spans = append(l.Spans, model.Span{Offset: int64(binary.LittleEndian.Uint64(numbers)), Bytes: int64(binary.LittleEndian.Uint64(numbers[8:]))})
		}
		most := 1<<20 + 200*uint64(len(text))
		if took := allocs.Least(most, func() { _ = judge(t, l) }); took > most {
			t.Fatalf("%d bytes were allocated for a text of %d", took, len(text))
		}
	})
}

// If a text is JSON for Go, it is a meta, unless its numbers are too long or it is nested too deeply. The reverse holds except for three words.
func FuzzCheckMeta(f *testing.F) {
	for _, meta := range []string{"", "{}", `{"a": [1, -2.5e-3, null, true, "\ud83d\ude00\ud800"]}`, "[NaN, -Infinity]", "[[1, NaN], {}]", "\xed\xa0\x80", `"` + "\xed\xa0\x80" + `"`, "01", `"\x"`, strings.Repeat("[", 2000)} {
		f.Add(meta)
	}
	f.Fuzz(func(t *testing.T, meta string) {
		err := CheckMeta(meta)
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatal(err)
		}
		tree := &model.Layout{Text: "L\x02\x02\x00\x00\x00\x00" + `["list","value","value"]`}
		if beside := CheckAnnotation(tree, meta); beside == nil && err != nil || beside != nil && !errors.Is(beside, ErrMalformed) {
			t.Fatalf("%q: %v, %v", meta, err, beside)
		}
		if meta == "" || strings.ContainsAny(meta, "IN") || !utf8.ValidString(meta) {
			return
		}
		valid := stdjson.Valid([]byte(meta))
		if err == nil && !valid || err != nil && valid && len(meta) <= mostDepth {
			t.Fatalf("%q: %v", meta, err)
		}
	})
}

// The values of a tree are beside its meta: as many as the structure has.
func TestAnnotation(t *testing.T) {
	flat := &model.Layout{Text: "L\x02\x00\x00\x00\x00\x00"}
	tree := &model.Layout{Text: "L\x02\x02\x00\x00\x00\x00" + `["dict","a","value",2,["tuple","value"]]`}
	for _, l := range []*model.Layout{flat, tree} {
		if err := Check(l); err != nil {
			t.Fatal(err)
		}
	}
	for meta, ok := range map[string]bool{
		"[[1,null],null]": true, ` [ ["a", -1.5e3] , {"meta": [1]}] `: true, "[[NaN,true],[[]]]": true, "[[1],null]": false, "[[1,2,3],null]": false, "[[1,2]]": false, "[[1,2],null,null]": false,
		"[[1,[2]],null]": false, "[[1,{}],null]": false, "": false, "null": false, "[1,2]": false, "[null,[1,2]]": false, "[[1,2],]": false, "{}": false,
	} {
		if err := CheckAnnotation(tree, meta); (err == nil) != ok || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", meta, err)
		}
		if err := CheckAnnotation(flat, meta); (err == nil) != (CheckMeta(meta) == nil) {
			t.Errorf("%s beside regions: %v", meta, err)
		}
	}
}

func TestDepthOfTrees(t *testing.T) {
	for depth, ok := range map[int]bool{1: true, mostTreeDepth: true, mostTreeDepth + 1: false, 1 << 20: false} {
		if _, err := checkTree(strings.Repeat(`["list",`, depth-1)+`["list"]`+strings.Repeat("]", depth-1), 0); (err == nil) != ok {
			t.Errorf("%d: %v", depth, err)
		}
	}
}

func TestMeta(t *testing.T) {
	digits := strings.Repeat("1", mostDigits)
	for meta, ok := range map[string]bool{
		"": true, " {} ": true, "NaN": true, "-Infinity": true, "[Infinity]": true, "-NaN": false, "nan": false, `"` + "\xed\xa0\x80" + `"`: true, `"` + "\xff" + `"`: false,
		digits: true, "-" + digits: true, digits + "1": false, digits + "1.5": true, "1,": false, "\ufeff1": false, `"\ud800"`: true, `"\uD8"`: false, "\"\x1f\"": false, "\"\x7f\"": true,
		strings.Repeat("[", mostDepth) + strings.Repeat("]", mostDepth):           true,
		strings.Repeat("[", mostDepth+1) + strings.Repeat("]", mostDepth+1):       false,
		strings.Repeat(`{"a":`, mostDepth) + "1" + strings.Repeat("}", mostDepth): true,
		strings.Repeat("[", 10<<20): false,
	} {
		if err := CheckMeta(meta); (err == nil) != ok {
			t.Errorf("%.40q: %v", meta, err)
		}
	}
}

// Texts of structures are compared as Python reads them: two surrogates are one character only if both are escaped.
func TestNames(t *testing.T) {
	for pair, ok := range map[string]bool{
		`"a", "b"`: true, `"a", "a"`: false, `"a", "\u0061"`: false, `"\ud800", "\ud801"`: true, `"\ud800", "\uD800"`: false, `"\ud83d\ude00", "` + "\U0001f600" + `"`: false,
		`"\ud83d\ude00", "\ud83d"`: true, `"", "a"`: true, `"", ""`: false,
	} {
		text := fmt.Sprintf(`{"aligned":true,"formats":["|u1","|u1"],"itemsize":2,"names":[%s],"offsets":[0,1],"titles":[null,null]}`, pair)
		if _, got := dtypeBytes(text, 0); got != ok {
			t.Errorf("%s: %v", pair, got)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	l := right(rand.New(rand.NewPCG(3, 3))).layout()
	for b.Loop() {
		_ = Check(l)
	}
}

func TestBytesAreDescribed(t *testing.T) {
	for _, n := range []int64{0, 1, 4097, 1 << 40} {
		l := Bytes(n)
		if err := Check(&l); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
