package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrRequest marks requests that make no sense.
var ErrRequest = errors.New("not a request to the doctor")

// Request says what to look at, as JSON.
type Request struct {
	Device  *int   `json:"device"`  // null: all that the process sees
	Kernels string `json:"kernels"` // path of the kernels' image
	Rates   *bool  `json:"rates"`   // null and true: measure copies
}

// ParseRequest reads a request. Names that it does not know are refused: a slip must not look like an answer.
func ParseRequest(text []byte) (Request, error) {
	var q Request
	from := json.NewDecoder(bytes.NewReader(text))
	from.DisallowUnknownFields()
	if err := from.Decode(&q); err != nil {
		return q, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if _, err := from.Token(); !errors.Is(err, io.EOF) {
		return q, fmt.Errorf("%w: something follows the object", ErrRequest)
	}
	if q.Device != nil && *q.Device < 0 {
		return q, fmt.Errorf("%w: device is %d; numbers begin with 0", ErrRequest, *q.Device)
	}
	return q, nil
}
