package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Unreadable tells whether a read failed because of the medium under the requested range, so that other ranges of the file may be readable.
func Unreadable(err error) bool {
	for _, errno := range []unix.Errno{
		unix.EIO,
		unix.ENODATA,   // a medium error, with direct I/O
		unix.EILSEQ,    // the protection information of a block is wrong
		unix.EREMOTEIO, // the device reports an error of its own
		unix.EBADMSG,   // a wrong checksum of the file system (XFS, F2FS)
		unix.EUCLEAN,   // … or its structure
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
