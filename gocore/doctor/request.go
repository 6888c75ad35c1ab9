package doctor

import (
	"errors"
	"fmt"

	"velocpy/gocore/base/strictjson"
)

// ErrRequest marks invalid requests.
var ErrRequest = errors.New("not a request to the doctor")

// Request is a request to examine the machine, as JSON.
type Request struct {
	Device  *int   `json:"device"`  // null: all devices that the process sees
	Kernels string `json:"kernels"` // path of the kernels' image
	Rates   *bool  `json:"rates"`   // null and true: measure copies
}

// ParseRequest reads a request.
func ParseRequest(text []byte) (Request, error) {
	var q Request
	if err := strictjson.Decode(text, &q); err != nil {
		return q, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if q.Device != nil && *q.Device < 0 {
		return q, fmt.Errorf("%w: device is %d; numbers begin with 0", ErrRequest, *q.Device)
	}
	return q, nil
}
