package pytext

import (
	"encoding/json"
	"testing"
)

func TestTextsAsJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":                          `""`,
		"a\"\\\n\x00\x7f":           `"a\"\\\u000a\u0000\u007f"`,
		"ü€😀":                       `"\u00fc\u20ac\ud83d\ude00"`,
		"\xff\xc3":                  `"\udcff\udcc3"`,
		"\xed\xa0\x80|\xed\xbf\xbf": `"\ud800|\udfff"`,
		"\xed\xa0":                  `"\udced\udca0"`,
	} {
		if got := string(Append(nil, text)); got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
}

func TestTextsWithinJSON(t *testing.T) {
	all := struct {
		History Text
		Counts  Map[int]
	}{"\xed\xa0\x80", Map[int]{"b": 2, "\xed\xbf\xbf": 3, "a": 1}}
	got, err := json.Marshal(all)
	if want := `{"History":"\ud800","Counts":{"a":1,"b":2,"\udfff":3}}`; string(got) != want || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := json.Marshal(Map[any]{"a": func() {}}); err == nil {
		t.Error("a function has JSON")
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abc", 2, "ab"},
		{"aü", 2, "a"},
		{"aü", 3, "aü"},
		{"a😀b", 4, "a"},
		{"a😀b", 5, "a😀"},
		{"😀", 3, ""},
		{"a\xed\xa0\x80", 3, "a"},               // a surrogate is a character
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80"}, // no character is longer than 4 bytes
	} {
		if got := Cut(c.text, c.most); got != c.want {
			t.Errorf("%q cut to %d bytes is %q, not %q", c.text, c.most, got, c.want)
		}
	}
}
