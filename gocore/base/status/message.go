package status

import (
	"slices"
	"strings"
)

// Message is the text and the cause without tier and region, which cross the boundary as numbers.
func (e *Error) Message() string {
	text := e.Text
	if text == "" {
		text = e.Code.String()
	}
	return text + e.why()
}

// why is the part of the message from the cause.
func (e *Error) why() string {
	if e.Cause == nil {
		return ""
	}
	if why := e.Cause.Error(); why != "" {
		return ": " + why
	}
	return ""
}

// Without returns err with a text that lacks the parts, between colons, that a status's own text already contains. errors.Is and Errno see err
// unchanged.
func Without(err error, said ...string) error {
	parts := slices.DeleteFunc(strings.Split(err.Error(), ": "), func(part string) bool { return slices.Contains(said, part) })
	return &shortened{error: err, text: strings.Join(parts, ": ")}
}

type shortened struct {
	error
	text string
}

func (s *shortened) Error() string { return s.text }
func (s *shortened) Unwrap() error { return s.error }
