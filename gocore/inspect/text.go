package inspect

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"velocpy/gocore/plan"
)

const hexDigits = "0123456789abcdef"

// appendString appends a text as JSON, in ASCII alone. What is no UTF-8 becomes lone surrogates: those that it stands for where Python has written it
// ("surrogatepass"), and else those of Python's "surrogateescape".
func appendString(to []byte, s string) []byte {
	to = append(to, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c >= ' ' && c < 0x7f:
			to = append(to, c)
		case c < utf8.RuneSelf:
			to = appendUnit(to, uint16(c))
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n <= 1 && surrogate(s[i:]):
				to = appendUnit(to, 0xd000|uint16(s[i+1]&0x3f)<<6|uint16(s[i+2]&0x3f))
				n = 3
			case r == utf8.RuneError && n <= 1:
				to, n = appendUnit(to, 0xdc00|uint16(c)), 1
			case r >= 0x10000:
				to = appendUnit(to, uint16(0xd800+(r-0x10000)>>10))
				to = appendUnit(to, uint16(0xdc00+(r-0x10000)&0x3ff))
			default:
				to = appendUnit(to, uint16(r))
			}
			i += n
			continue
		}
		i++
	}
	return append(to, '"')
}

// surrogate tells whether a text begins with what stands for half of a pair.
func surrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xed && s[1]&0xe0 == 0xa0 && s[2]&0xc0 == 0x80
}

func appendUnit(to []byte, u uint16) []byte {
	return append(to, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}

func appendKey(to []byte, k plan.Key) []byte {
	if k.IsText {
		return appendString(to, k.Text)
	}
	return strconv.AppendInt(to, k.Number, 10)
}

// appendLabel appends a key for people: a text in quotes, so that "7" is not 7, and what a terminal might obey is spelt out.
func appendLabel(to []byte, k plan.Key) []byte {
	if k.IsText {
		return strconv.AppendQuote(to, k.Text)
	}
	return strconv.AppendInt(to, k.Number, 10)
}

// appendField appends a name and a number of a JSON object.
func appendField[N int | int64 | uint64](to []byte, name string, n N) []byte {
	to = append(append(append(to, ", \""...), name...), "\": "...)
	if n < 0 {
		return strconv.AppendInt(to, int64(n), 10)
	}
	return strconv.AppendUint(to, uint64(n), 10)
}

func appendBool(to []byte, name string, b bool) []byte {
	to = append(append(append(to, ", \""...), name...), "\": "...)
	return strconv.AppendBool(to, b)
}

// sized is a number of bytes for people.
func sized(n int64) string {
	v, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, next
	}
	if v >= 999.5 {
		return fmt.Sprintf("%.0f %s", v, unit)
	}
	return strconv.FormatFloat(v, 'g', 3, 64) + " " + unit
}
