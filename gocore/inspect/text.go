package inspect

import (
	"strconv"

	"velocpy/gocore/plan"
	"velocpy/gocore/pytext"
)

func appendKey(to []byte, k plan.Key) []byte {
	if k.IsText {
		return pytext.Append(to, k.Text)
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
