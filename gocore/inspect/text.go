package inspect

import (
	"strconv"
	"time"

	"velocpy/gocore/base/pytext"
	"velocpy/gocore/model"
)

func appendKey(to []byte, k model.Key) []byte {
	if k.IsText {
		return pytext.Append(to, k.Text)
	}
	return strconv.AppendInt(to, k.Number, 10)
}

// appendLabel appends a key for people. A text is quoted, so that "7" differs from 7, and control characters for a terminal are escaped.
func appendLabel(to []byte, k model.Key) []byte {
	if k.IsText {
		return strconv.AppendQuote(to, k.Text)
	}
	return strconv.AppendInt(to, k.Number, 10)
}

// Layouts of times for people and for programs, in UTC.
const (
	shownTime  = "2006-01-02 15:04:05"
	parsedTime = `"2006-01-02T15:04:05.000000Z"`
)

// appendShown appends a time, in ns since 1970, to a column for people.
func appendShown(to []byte, ns int64) []byte {
	to = append(to, "  "...)
	if ns == 0 {
		return appendRight(to, "-", len(shownTime))
	}
	return time.Unix(0, ns).UTC().AppendFormat(to, shownTime)
}

// appendTime appends a name and a time to a JSON object.
func appendTime(to []byte, name string, ns int64) []byte {
	return appendParsed(append(append(append(to, ", \""...), name...), "\": "...), ns)
}

// appendParsed appends a time, in ns since 1970, as JSON.
func appendParsed(to []byte, ns int64) []byte {
	if ns == 0 {
		return append(to, "null"...)
	}
	return time.Unix(0, ns).UTC().AppendFormat(to, parsedTime)
}

// appendField appends a name and a number to a JSON object.
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
