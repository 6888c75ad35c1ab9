// Package strictjson reads JSON that a caller has put together for us: a slip must not look like an answer.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

var errFollowed = errors.New("something follows the object")

// Decode reads one object. Names that it does not know are refused, and so is anything behind it.
func Decode(text []byte, into any) error {
	from := json.NewDecoder(bytes.NewReader(text))
	from.DisallowUnknownFields()
	if err := from.Decode(into); err != nil {
		return err
	}
	if _, err := from.Token(); !errors.Is(err, io.EOF) {
		return errFollowed
	}
	return nil
}
