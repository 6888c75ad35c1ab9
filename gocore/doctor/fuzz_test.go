package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A request that is parsed has only the fields of a request and a possible device number. Encoded again, it has the same meaning.
func FuzzRequest(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		q, err := ParseRequest(text)
		if err != nil {
			if !errors.Is(err, ErrRequest) {
				t.Fatal(err)
			}
			return
		}
		if q.Device != nil && *q.Device < 0 {
			t.Fatalf("device %d", *q.Device)
		}
		var names map[string]json.RawMessage
		if err := json.Unmarshal(text, &names); err != nil {
			t.Fatalf("taken for a request: %v", err)
		}
		for name := range names {
			if !slices.ContainsFunc([]string{"device", "kernels", "rates"}, func(known string) bool { return strings.EqualFold(known, name) }) {
				t.Fatalf("%q is no part of a request", name)
			}
		}
		said, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseRequest(said)
		if err != nil || !reflect.DeepEqual(again, q) {
			t.Fatalf("%s becomes %+v, %v", said, again, err)
		}
		if _, err := ParseRequest(append(bytes.Clone(said), said...)); !errors.Is(err, ErrRequest) {
			t.Fatalf("two requests are one: %v", err)
		}
	})
}
