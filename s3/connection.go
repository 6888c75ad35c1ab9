package main

import (
	"errors"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/wire"
)

// connection is a socket that connects this program to the core, and memory that both have mapped.
type connection struct {
	*net.UnixConn
	descriptor int    // that has come with a message, and is not mapped yet; -1: none
	memory     []byte // nil: the core shares none
}

// newConnection takes a socket over.
func newConnection(fd int) (*connection, error) {
	f := os.NewFile(uintptr(fd), "connection")
	defer f.Close() // FileConn has a duplicate
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.ErrUnsupported, c.Close())
	}
	return &connection{socket, -1, nil}, nil
}

// Read implements io.Reader. It keeps a descriptor that comes with the bytes.
func (c *connection) Read(p []byte) (int, error) {
	var control [64]byte
	n, length, _, _, err := c.ReadMsgUnix(p, control[:])
	if err != nil || length == 0 {
		return n, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:length])
	for i := range messages {
		descriptors, failed := unix.ParseUnixRights(&messages[i])
		err = errors.Join(err, failed)
		for _, fd := range descriptors {
			c.forget()
			c.descriptor = fd
		}
	}
	return n, err
}

// forget closes a descriptor that has come.
func (c *connection) forget() {
	if c.descriptor >= 0 {
		_ = unix.Close(c.descriptor)
	}
	c.descriptor = -1
}

// share maps the memory whose descriptor has come, instead of what there was before.
func (c *connection) share(bytes int64) (err error) {
	defer c.forget()
	if c.descriptor < 0 || bytes > wire.MostBody {
		return wire.ErrMessage
	}
	if c.memory != nil {
		if err := unix.Munmap(c.memory); err != nil {
			return err
		}
	}
	c.memory, err = unix.Mmap(c.descriptor, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

func (c *connection) close() {
	c.forget()
	if c.memory != nil {
		_ = unix.Munmap(c.memory)
	}
	_ = c.Close()
}

// serve answers the requests of a connection until it is closed. unusable says why no request can be sent; nil: they can.
func serve(fd int, client *client, unusable error) {
	c, err := newConnection(fd)
	if err != nil {
		return
	}
	defer c.close()
	for c.serveOne(client, unusable) == nil {
	}
}

// buffers are those that no request uses: there are as many as requests that were under way at once.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (c *connection) serveOne(client *client, unusable error) error {
	var buffer *[]byte // none while the connection waits for a request
	defer func() {
		if buffer != nil {
			buffers.Put(buffer)
		}
	}()
	var q wire.Request
	shared := false // the reply's body lies in the connection's memory
	room := func(n int64) ([]byte, error) {
		if shared = q.Return && n <= int64(len(c.memory)); shared {
			return c.memory[:n], nil
		}
		if buffer == nil {
			buffer = buffers.Get().(*[]byte)
		}
		if int64(cap(*buffer)) < n {
			*buffer = make([]byte, n)
		}
		return (*buffer)[:n], nil
	}
	body, err := wire.Read(c, &q, room)
	if err != nil {
		return err
	}
	if q.Share > 0 {
		if err := c.share(q.Share); err != nil {
			return err
		}
	}
	if q.Held < 0 || q.Held > int64(len(c.memory)) {
		return wire.ErrMessage
	}
	if q.Held > 0 {
		body = c.memory[:q.Held]
	}
	r, reply := wire.Reply{Why: wire.Refused}, []byte(nil)
	if unusable != nil {
		r.Text = unusable.Error()
	} else {
		r, reply = client.answer(&q, body, room)
	}
	if shared {
		r.Held, reply = int64(len(reply)), nil
	}
	return wire.Write(c, &r, reply)
}
