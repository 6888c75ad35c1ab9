package vfs

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Unreadable tells whether a read failed because of the medium below the requested range, so that other ranges of the file may be readable.
func Unreadable(err error) bool {
	for _, errno := range []unix.Errno{
		unix.EIO,
		unix.ENODATA,   // a medium error, without the page cache
		unix.EILSEQ,    // wrong protection information of a block
		unix.EREMOTEIO, // an error that the device reports
		unix.EBADMSG,   // a wrong checksum of the file system (XFS, F2FS)
		unix.EUCLEAN,   // a damaged structure of the file system
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
