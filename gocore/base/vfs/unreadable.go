package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Unreadable tells whether a read failed because of the medium under the range that was asked for, so that other ranges of the file may be readable.
func Unreadable(err error) bool {
	for _, errno := range []unix.Errno{
		unix.EIO,
		unix.ENODATA,   // a medium error, past the page cache
		unix.EILSEQ,    // the protection information of a block is wrong
		unix.EREMOTEIO, // the device reports an error of its own
		unix.EBADMSG,   // the checksum that the file system keeps is wrong (XFS, F2FS)
		unix.EUCLEAN,   // … or its structure
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
