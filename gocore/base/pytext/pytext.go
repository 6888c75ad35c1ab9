// Package pytext cuts Python's texts, and writes them as JSON. They may have lone surrogates, which no UTF-8 stands for, and which encoding/json does not keep.
package pytext

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"
)

// Text is a text as Python has encoded it. Its JSON says the same text to Python.
type Text string

// MarshalJSON never fails.
func (t Text) MarshalJSON() ([]byte, error) { return Append(nil, string(t)), nil }

// Map is a JSON object whose names are such texts, in their order.
type Map[V any] map[string]V

// MarshalJSON fails where a value has no JSON.
func (m Map[V]) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		value, err := json.Marshal(m[name])
		if err != nil {
			return nil, err
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(Append(text, name), ':'), value...)
	}
	return append(text, '}'), nil
}

const hexDigits = "0123456789abcdef"

// Append appends a text as JSON, in ASCII alone. What is no UTF-8 becomes lone surrogates: those that it stands for where Python has written it
// ("surrogatepass"), and else those of Python's "surrogateescape".
func Append(to []byte, s string) []byte {
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
			case r == utf8.RuneError && n <= 1 && Surrogate(s[i:]):
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

// Cut returns at most the given number of a text's bytes, and splits no character.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > max(most-utf8.UTFMax, 0) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// Surrogate tells whether a text begins with the three bytes that stand for half of a pair.
func Surrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xed && s[1]&0xe0 == 0xa0 && s[2]&0xc0 == 0x80
}

func appendUnit(to []byte, u uint16) []byte {
	return append(to, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
