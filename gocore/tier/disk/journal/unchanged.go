package journal

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// Unchanged tells whether the log is as it was when it was read. It is cheap: a writer either begins a file, or writes at the end of the newest file's
// frames.
func (s *State) Unchanged(o Options) (bool, error) {
	numbers, err := o.files()
	if err != nil || len(numbers) == 0 || numbers[len(numbers)-1] != s.newest || s.end == 0 {
		return false, err
	}
	file, err := o.FS.Open(o.path(s.newest), false, false)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // nothing was written to it
	var next [grain]byte
	n, err := file.ReadAt(next[:], s.end)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n == 0 || string(next[:n]) == unused, err
}
