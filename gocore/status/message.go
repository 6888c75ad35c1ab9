package status

import "fmt"

// Message is the text and the cause without the places, which cross the boundary as numbers.
func (e *Error) Message() string {
	text := e.Text
	if text == "" {
		text = e.Code.String()
	}
	if e.Cause != nil {
		return fmt.Sprintf("%s: %v", text, e.Cause)
	}
	return text
}
