package status

import (
	"slices"
	"strings"
)

// Message is the text and the cause without the places, which cross the boundary as numbers.
func (e *Error) Message() string {
	text := e.Text
	if text == "" {
		text = e.Code.String()
	}
	return text + e.why()
}

// why is what the cause adds to the text.
func (e *Error) why() string {
	if e.Cause == nil {
		return ""
	}
	if why := e.Cause.Error(); why != "" {
		return ": " + why
	}
	return ""
}

// Without returns err with a text that lacks the parts, between colons, which a status's own text says already. errors.Is and Errno see err as it is.
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
