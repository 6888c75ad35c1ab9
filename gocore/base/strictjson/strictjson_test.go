package strictjson

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for text, why := range map[string]string{
		`{"a": 1}`:          "",
		` {"a": 1} ` + "\n": "",
		`{}`:                "",
		`{"a": 1, "b": 2}`:  `unknown field "b"`,
		`{"a": "1"}`:        "cannot unmarshal",
		`{"a": 1} {}`:       "something follows",
		`{"a": 1}]`:         "something follows",
		`{"a": 1`:           "unexpected EOF",
		``:                  "EOF",
	} {
		var into struct{ A int }
		err := Decode([]byte(text), &into)
		if (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
