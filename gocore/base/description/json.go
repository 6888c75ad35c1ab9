package description

import (
	"math"
	"strings"
	"unicode/utf16"
)

const (
	mostDepth  = 1000 // of the meta: nested lists and objects
	mostDigits = 4300 // of an integer: Python by default reads no longer ones
)

// CheckMeta tells whether Python's JSON can read a meta: RFC 8259, plus NaN, Infinity and -Infinity as numbers. An empty text means no meta.
func CheckMeta(meta string) error {
	if meta == "" {
		return nil
	}
	if !wellFormed(meta) {
		return malformed("the meta is no UTF-8")
	}
	j := json{p: meta}
	if !j.value(0) || !j.ends() {
		return malformed("the meta is no JSON, from byte %d on", len(meta)-len(j.p))
	}
	return nil
}

// json reads JSON from the front. Each method skips white space, consumes the element that it is named for, and tells whether that was present.
type json struct{ p string }

func (j *json) space() { j.p = strings.TrimLeft(j.p, " \t\n\r") }

func (j *json) ends() bool {
	j.space()
	return j.p == ""
}

func (j *json) token(c byte) bool {
	j.space()
	if j.p == "" || j.p[0] != c {
		return false
	}
	j.p = j.p[1:]
	return true
}

func (j *json) word(w string) bool {
	j.space()
	rest, ok := strings.CutPrefix(j.p, w)
	if ok {
		j.p = rest
	}
	return ok
}

// value consumes a value of any kind, at a depth.
func (j *json) value(depth int) bool {
	j.space()
	if j.p == "" || depth > mostDepth {
		return false
	}
	switch j.p[0] {
	case '[':
		return depth < mostDepth && j.list(func() bool { return j.value(depth + 1) })
	case '{':
		return depth < mostDepth && j.object(func(string) bool { return j.value(depth + 1) })
	case '"':
		_, ok := j.text()
		return ok
	case 't':
		return j.word("true")
	case 'f':
		return j.word("false")
	case 'n':
		return j.word("null")
	case 'N':
		return j.word("NaN")
	}
	return j.word("Infinity") || j.word("-Infinity") || j.number()
}

func (j *json) list(each func() bool) bool {
	if !j.token('[') {
		return false
	}
	if j.token(']') {
		return true
	}
	for {
		if !each() {
			return false
		}
		if j.token(']') {
			return true
		}
		if !j.token(',') {
			return false
		}
	}
}

func (j *json) object(each func(name string) bool) bool {
	if !j.token('{') {
		return false
	}
	if j.token('}') {
		return true
	}
	for {
		name, ok := j.text()
		if !ok || !j.token(':') || !each(name) {
			return false
		}
		if j.token('}') {
			return true
		}
		if !j.token(',') {
			return false
		}
	}
}

func (j *json) digits() int {
	rest := strings.TrimLeft(j.p, "0123456789")
	n := len(j.p) - len(rest)
	j.p = rest
	return n
}

// whole consumes the digits of an integer, and returns their number; 0: none, or several that begin with 0.
func (j *json) whole() int {
	zero := strings.HasPrefix(j.p, "0")
	n := j.digits()
	if zero && n > 1 {
		return 0
	}
	return n
}

func (j *json) number() bool {
	j.p = strings.TrimPrefix(j.p, "-")
	n := j.whole()
	if n == 0 {
		return false
	}
	fraction := false
	if strings.HasPrefix(j.p, ".") {
		j.p, fraction = j.p[1:], true
		if j.digits() == 0 {
			return false
		}
	}
	if strings.HasPrefix(j.p, "e") || strings.HasPrefix(j.p, "E") {
		j.p, fraction = j.p[1:], true
		if strings.HasPrefix(j.p, "+") || strings.HasPrefix(j.p, "-") {
			j.p = j.p[1:]
		}
		if j.digits() == 0 {
			return false
		}
	}
	return fraction || n <= mostDigits
}

// integer consumes an integer from 0 up to the largest allowed in a dtype.
func (j *json) integer() (n int64, ok bool) {
	j.space()
	before := j.p
	count := j.whole()
	if count == 0 || count > 10 || strings.HasPrefix(j.p, ".") || strings.HasPrefix(j.p, "e") || strings.HasPrefix(j.p, "E") {
		return 0, false
	}
	for i := range count {
		n = 10*n + int64(before[i]-'0')
	}
	return n, n <= math.MaxInt32
}

// text consumes a text, and returns it in UTF-8 with surrogates encoded like characters. The bytes between the quotes are in that form already.
func (j *json) text() (string, bool) {
	if !j.token('"') {
		return "", false
	}
	end := strings.IndexAny(j.p, "\"\\")
	if end < 0 {
		return "", false
	}
	if j.p[end] == '"' {
		s := j.p[:end]
		j.p = j.p[end+1:]
		return s, plain(s)
	}
	var s []byte
	for {
		end := strings.IndexAny(j.p, "\"\\")
		if end < 0 || !plain(j.p[:end]) {
			return "", false
		}
		s = append(s, j.p[:end]...)
		closes := j.p[end] == '"'
		j.p = j.p[end+1:]
		if closes {
			return string(s), true
		}
		var ok bool
		if s, ok = j.escaped(s); !ok {
			return "", false
		}
	}
}

// plain tells whether a text may be between quotes without an escape.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' {
			return false
		}
	}
	return true
}

// escaped consumes the rest of an escape behind a backslash.
func (j *json) escaped(to []byte) ([]byte, bool) {
	if j.p == "" {
		return to, false
	}
	c := j.p[0]
	j.p = j.p[1:]
	if at := strings.IndexByte(`"\/bfnrt`, c); at >= 0 {
		return append(to, "\"\\/\b\f\n\r\t"[at]), true
	}
	if c != 'u' {
		return to, false
	}
	r, ok := j.unit()
	if !ok {
		return to, false
	}
	if utf16.IsSurrogate(r) && strings.HasPrefix(j.p, `\u`) {
		behind := json{p: j.p[2:]}
		if low, ok := behind.unit(); ok {
			if pair := utf16.DecodeRune(r, low); pair != '\ufffd' {
				j.p, r = behind.p, pair
			}
		}
	}
	return appendUnit(to, r), true
}

// unit consumes four hexadecimal digits.
func (j *json) unit() (r rune, ok bool) {
	if len(j.p) < 4 {
		return 0, false
	}
	for i := range 4 {
		digit := strings.IndexByte("0123456789abcdef", j.p[i]|0x20)
		if digit < 0 || j.p[i] < '0' {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	j.p = j.p[4:]
	return r, true
}
