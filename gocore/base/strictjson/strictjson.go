// Package strictjson reads JSON from a caller strictly, so that a typing error is reported instead of ignored.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

var errFollowed = errors.New("something follows the object")

// Decode reads one object. It rejects unknown names, and any text behind the object.
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
