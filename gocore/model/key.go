// Package model holds the plain types that describe a checkpoint: its key, the layout of its regions, and arrays in raw memory.
//
// The package imports nothing of the core, so that an interface can name these types without importing an implementation.
package model

import "strconv"

// Key names a checkpoint within its history: a number, or a text when IsText. The field that is not used stays zero, so that keys compare with ==.
type Key struct {
	Text   string
	Number int64
	IsText bool
}

// NumberKey returns the key of a numbered checkpoint.
func NumberKey(n int64) Key { return Key{Number: n} }

// TextKey returns the key of a named checkpoint.
func TextKey(s string) Key { return Key{Text: s, IsText: true} }

// String is the key as it appears in messages: 7, or "wave speed" in quotes.
func (k Key) String() string {
	if k.IsText {
		return strconv.Quote(k.Text)
	}
	return strconv.FormatInt(k.Number, 10)
}
