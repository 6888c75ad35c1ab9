package journal

import (
	"errors"
	"fmt"
	"math"

	"velocpy/gocore/base/vfs"
)

// A log can be kept elsewhere than in files: as the contents that its files would have. Each has one batch, or a snapshot, and the frame of a log that was closed.

// FileName is the name of the log's file of a number.
func FileName(number uint64) string { return fileName(number) }

// BatchFile returns the content of the file of a number, with the batch of the same number: it comes behind that of the number before.
func BatchFile(store [16]byte, number uint64, records [][]byte) ([]byte, error) {
	if number == 0 || number > mostNumber {
		return nil, ErrExhausted
	}
	var payload []byte
	for _, record := range records {
		payload = appendRecord(payload, record)
	}
	if len(payload) > MostPayload {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(payload))
	}
	at := place{store: store, file: number}
	p := appendFrame(nil, at, kindBegin, 0, begin{behind: number - 1}.bytes())
	at.offset = int64(len(p))
	p = appendFrame(p, at, kindBatch, number, payload)
	at.offset = int64(len(p))
	return appendFrame(p, at, kindClosed, number, nil), nil
}

// SnapshotFile returns the content of the file of a number, with a snapshot of all records up to the batch of that number. f is that of Log.Compact.
func SnapshotFile(store [16]byte, number uint64, f func(give func(record []byte) error) error) (p []byte, err error) {
	if number == 0 || number > mostNumber {
		return nil, ErrExhausted
	}
	const dir = "/"
	o := Options{FS: vfs.NewMem(math.MaxInt64 / 2), Dir: dir, Store: store}
	l := Open(o, &State{Last: number, newest: number - 1, Closed: true})
	if err := errors.Join(l.Compact(f), l.Close()); err != nil {
		return nil, err
	}
	file, err := o.FS.Open(o.path(number), false, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	p = make([]byte, size)
	_, err = file.ReadAt(p, 0)
	return p, err
}
