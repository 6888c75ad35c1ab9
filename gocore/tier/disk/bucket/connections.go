package bucket

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/wire"
)

// answerWithin bounds the wait for a reply. The program bounds its requests itself, and only one that is stopped takes longer.
const answerWithin = 20 * 60

// Connections are the sockets of a program velocpy-s3. Each carries one request at a time.
type Connections struct{ free chan socket }

// NewConnections takes sockets over. They are closed, which ends the program, when nothing uses the Connections any more.
func NewConnections(descriptors []int) (*Connections, error) {
	c := &Connections{make(chan socket, len(descriptors))}
	for _, fd := range descriptors {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: answerWithin}); err != nil {
			return nil, fmt.Errorf("a socket of velocpy-s3: %w", err)
		}
		c.free <- socket(fd)
	}
	runtime.AddCleanup(c, closeAll, c.free)
	return c, nil
}

// closeAll closes sockets that carry no request.
func closeAll(free chan socket) {
	for range cap(free) {
		if s := <-free; s >= 0 {
			_ = unix.Close(int(s)) // nothing is written to it any more
		}
	}
}

// Ask implements Server.
func (c *Connections) Ask(q *wire.Request, body, into []byte) (r wire.Reply, n int, err error) {
	s := <-c.free
	defer func() { c.free <- s }()
	if s < 0 {
		return r, 0, fmt.Errorf("%w: %w", ErrNoProgram, unix.EPIPE)
	}
	var got []byte
	if err = wire.Write(s, q, body); err == nil {
		got, err = wire.Read(s, &r, func(n int64) ([]byte, error) {
			if n > int64(len(into)) {
				return nil, wire.ErrMessage
			}
			return into[:n], nil
		})
	}
	if err != nil { // the next bytes of this socket may be the rest of a message
		_ = unix.Close(int(s)) // nothing is relied on that was written to it
		s = -1
		return r, 0, fmt.Errorf("%w: %w", ErrNoProgram, err)
	}
	return r, len(got), nil
}

// socket is a stream socket that blocks.
type socket int

// Read implements io.Reader.
func (s socket) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(s), p)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write implements io.Writer. A socket whose other end is closed raises no signal.
func (s socket) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.SendmsgN(int(s), p[done:], nil, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}
