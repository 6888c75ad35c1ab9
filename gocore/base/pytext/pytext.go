// Package pytext cuts Python's texts, and writes them as JSON. They may have lone surrogates, which valid UTF-8 cannot represent, and which
// encoding/json does not keep.
package pytext

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"
)

// Text is a text in Python's encoding. Python reads the same text from its JSON.
type Text string

// MarshalJSON never fails.
func (t Text) MarshalJSON() ([]byte, error) { return Append(nil, string(t)), nil }

// Map is a JSON object whose names are such texts, in sorted order.
type Map[V any] map[string]V

// MarshalJSON fails if a value has no JSON form.
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

// Append appends a text as JSON, in ASCII only. Bytes that are not UTF-8 become lone surrogates: encoded surrogates where Python has written them
// ("surrogatepass"), otherwise those of Python's "surrogateescape".
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

// Cut returns at most that many bytes of a text, without splitting a character.
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

// Surrogate tells whether a text begins with the three bytes of an encoded surrogate.
func Surrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xed && s[1]&0xe0 == 0xa0 && s[2]&0xc0 == 0x80
}

func appendUnit(to []byte, u uint16) []byte {
	return append(to, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
