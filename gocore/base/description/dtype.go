package description

import (
	"math"
	"strings"
)

// mostNested bounds the nesting of dtypes. Each level escapes the quotes of the one below, so no text that fits a layout reaches the bound.
const mostNested = 32

// itemBytes is the size of an element of a region's dtype; -1: only the client knows it.
func itemBytes(text string, library uint8) (int64, error) {
	var size int64
	ok := true
	switch {
	case !ascii(text):
		ok = false
	case strings.HasPrefix(text, "["): // elements of an array are never arrays themselves
		ok = false
	case library == torch && !strings.HasPrefix(text, "="):
		ok = tensorTypes[text]
		if ok {
			size, ok = plainBytes(text)
		}
	default:
		size, ok = dtypeBytes(text, 0)
	}
	if !ok {
		return 0, malformed("%.80q is no dtype that can be stored", text)
	}
	return size, nil
}

// tensorTypes are the dtypes that torch shares with NumPy.
var tensorTypes = func() map[string]bool {
	all := map[string]bool{"|b1": true, "|i1": true, "|u1": true}
	for _, text := range []string{"i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"} {
		all["<"+text], all[">"+text] = true, true
	}
	return all
}()

// dtypeBytes is the size of a dtype, nested in others; -1: only the client knows it.
func dtypeBytes(text string, nested int) (size int64, ok bool) {
	switch {
	case text == "" || nested > mostNested:
		return 0, false
	case text[0] == '=':
		return namedBytes(text[1:])
	case text[0] == '[':
		return arrayBytes(text, nested)
	case text[0] == '{':
		return structureBytes(text, nested)
	}
	return plainBytes(text)
}

// plainBytes is the size of a dtype in NumPy's short form: byte order, kind, size, and the unit of a time.
func plainBytes(text string) (size int64, ok bool) {
	if len(text) < 3 {
		return 0, false
	}
	order, kind := text[0], text[1]
	j := json{p: text[2:]}
	n, ok := j.integer()
	if !ok || text[2] < '0' || text[2] > '9' {
		return 0, false
	}
	unit := j.p
	size = n
	anyOrder := false // the byte order does not matter, as there is one byte at most
	switch kind {
	case 'b':
		anyOrder, ok = true, n == 1
	case 'i', 'u':
		anyOrder, ok = n == 1, n == 1 || n == 2 || n == 4 || n == 8
	case 'f':
		ok = n == 2 || n == 4 || n == 8 || n == 10 || n == 12 || n == 16
	case 'c':
		ok = n == 8 || n == 16 || n == 20 || n == 24 || n == 32
	case 'S', 'V':
		anyOrder = true
	case 'U':
		size = 4 * n
	case 'M', 'm':
		ok = n == 8 && (unit == "" || timeUnit(unit))
		unit = ""
	default: // includes references to objects
		ok = false
	}
	ok = ok && unit == "" && size <= mostItem
	if anyOrder {
		return size, ok && order == '|'
	}
	return size, ok && (order == '<' || order == '>')
}

// timeUnit tells whether a text is the unit of a date or duration: a count and a unit, in brackets.
func timeUnit(text string) bool {
	text, opened := strings.CutPrefix(text, "[")
	text, closed := strings.CutSuffix(text, "]")
	if !opened || !closed {
		return false
	}
	if j := (json{p: text}); text != "" && text[0] >= '0' && text[0] <= '9' {
		if n, ok := j.integer(); !ok || n < 2 { // a count of one is omitted
			return false
		}
		text = j.p
	}
	switch text {
	case "Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as":
		return true
	}
	return false
}

// named are the sizes of dtypes that NumPy itself lacks.
var named = map[string]int64{
	"bfloat16": 2, "complex32": 4, "float4_e2m1fn": 1, "float4_e2m1fn_x2": 1, "float6_e2m3fn": 1, "float6_e3m2fn": 1, "float8_e3m4": 1, "float8_e4m3": 1,
	"float8_e4m3b11fnuz": 1, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
	"int2": 1, "int4": 1, "uint2": 1, "uint4": 1,
}

const (
	mostNameBytes  = 64
	mostNamedBytes = 64
)

// namedBytes is the size of such a dtype. An unknown one may be of a later version of its library: the client has to compare the size.
func namedBytes(name string) (size int64, ok bool) {
	if size, ok = named[name]; ok {
		return size, true
	}
	if name == "" || len(name) > mostNameBytes || name[0] < 'a' || name[0] > 'z' {
		return 0, false
	}
	rest := strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz0123456789_")
	return -1, rest == ""
}

// arrayBytes is the size of a dtype with a shape: a list of both.
func arrayBytes(text string, nested int) (size int64, ok bool) {
	j := json{p: text}
	axes, part := 0, 0
	product := int64(1)
	ok = j.list(func() bool {
		part++
		switch part {
		case 1:
			base, ok := j.text()
			if ok {
				size, ok = dtypeBytes(base, nested+1)
			}
			return ok
		case 2:
			return j.list(func() bool {
				n, ok := j.integer()
				axes++
				product *= n
				return ok && axes <= mostAxes && product <= mostItem
			})
		}
		return false
	})
	switch {
	case !ok || part != 2 || axes == 0 || !j.ends() || size > 0 && product > mostItem/size:
		return 0, false
	case size < 0:
		return -1, true
	}
	return size * product, true
}

// structure is a dtype with fields, as far as it has been read.
type structure struct {
	names   []string
	sizes   []int64
	offsets []int64
	titles  []string // a text behind a quote, or the digits of a number; empty: none
	item    int64
	seen    map[string]bool
}

// structureBytes is the size of a dtype with fields: an object.
func structureBytes(text string, nested int) (size int64, ok bool) {
	j := json{p: text}
	s := structure{seen: map[string]bool{}}
	ok = j.object(func(name string) bool {
		if s.seen[name] {
			return false
		}
		s.seen[name] = true
		return s.member(&j, name, nested)
	})
	if !ok || !j.ends() || !s.whole() {
		return 0, false
	}
	return s.item, true
}

func (s *structure) member(j *json, name string, nested int) bool {
	switch name {
	case "names":
		return j.list(func() bool {
			field, ok := j.text()
			s.names = append(s.names, field)
			return ok
		})
	case "formats":
		return j.list(func() bool {
			format, ok := j.text()
			size := int64(0)
			if ok {
				size, ok = dtypeBytes(format, nested+1)
			}
			s.sizes = append(s.sizes, max(size, 0))
			return ok
		})
	case "offsets":
		return j.list(func() bool {
			offset, ok := j.integer()
			s.offsets = append(s.offsets, offset)
			return ok
		})
	case "titles":
		return j.list(func() bool { return s.title(j) })
	case "itemsize":
		var ok bool
		s.item, ok = j.integer()
		return ok
	case "aligned":
		return j.word("true") || j.word("false")
	}
	return false
}

func (s *structure) title(j *json) bool {
	j.space()
	title, ok := "", j.word("null")
	if before := j.p; !ok && strings.HasPrefix(before, `"`) {
		title, ok = j.text()
		title = `"` + title
	} else if !ok {
		_, ok = j.integer()
		title = before[:len(before)-len(j.p)]
	}
	s.titles = append(s.titles, title)
	return ok
}

// whole tells whether all members are present, and each field has a unique name and is inside the element.
func (s *structure) whole() bool {
	n := len(s.names)
	if len(s.seen) != 6 || len(s.sizes) != n || len(s.offsets) != n || len(s.titles) != n {
		return false
	}
	taken := make(map[string]bool, n)
	for i, name := range s.names {
		if taken[`"`+name] || s.offsets[i] > s.item-s.sizes[i] {
			return false
		}
		taken[`"`+name] = true
	}
	for _, title := range s.titles {
		if taken[title] {
			return false
		}
		taken[title] = title != ""
	}
	return s.item <= math.MaxInt32
}
