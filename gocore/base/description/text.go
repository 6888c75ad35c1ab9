package description

import (
	"unicode/utf8"

	"velocpy/gocore/base/pytext"
)

// wellFormed tells whether a text is UTF-8 that may have lone surrogates encoded like characters: Python's "surrogatepass".
func wellFormed(s string) bool {
	if utf8.ValidString(s) {
		return true
	}
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			if !pytext.Surrogate(s) {
				return false
			}
			n = 3
		}
		s = s[n:]
	}
	return true
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendUnit appends a character, or a surrogate encoded like one.
func appendUnit(to []byte, r rune) []byte {
	if r >= 0xd800 && r < 0xe000 {
		return append(to, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
	}
	return utf8.AppendRune(to, r)
}
