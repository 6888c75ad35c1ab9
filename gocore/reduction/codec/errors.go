package codec

import "errors"

var (
	// ErrCorrupt marks a container that no encoder wrote: truncated, damaged, or of another format. Restoring from another copy helps.
	ErrCorrupt = errors.New("the container is corrupt")
	// ErrReference marks a reference that is missing, has another length, or is not the one that the container was encoded with.
	ErrReference = errors.New("the reference is missing or not the right one")
	// ErrLength marks a buffer of the caller that is too short, or a length that is not the one in the container.
	ErrLength = errors.New("the length does not fit")
	// ErrKind marks an element kind that the codec does not know.
	ErrKind = errors.New("unknown kind of elements")
)

// IsDamage tells whether an error of decoding is about the container, and not about what the caller could not read.
func IsDamage(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrReference) || errors.Is(err, ErrLength)
}
