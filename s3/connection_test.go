package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/wire"
)

// object is a server with one object.
type object struct{ bytes []byte }

func (o *object) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.Method == http.MethodPut {
		o.bytes, _ = io.ReadAll(q.Body)
		return
	}
	var from, last int
	if _, err := fmt.Sscanf(q.Header.Get("Range"), "bytes=%d-%d", &from, &last); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	some := o.bytes[from:min(last+1, len(o.bytes))]
	w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
	w.Header().Set("Content-Length", strconv.Itoa(len(some)))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = w.Write(some)
}

// core is the other end of a connection.
type core struct {
	*testing.T
	socket int
	rights []byte
}

func (c *core) Read(p []byte) (int, error) {
	n, err := unix.Read(c.socket, p)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return n, err
}

func (c *core) Write(p []byte) (int, error) {
	n, err := unix.SendmsgN(c.socket, p, c.rights, nil, 0)
	c.rights = nil
	return n, err
}

func (c *core) ask(q wire.Request, body []byte) (r wire.Reply, reply []byte) {
	q.Bucket, q.Key = "bucket", "key"
	if err := wire.Write(c, &q, body); err != nil {
		c.Fatal(err)
	}
	reply, err := wire.Read(c, &r, func(n int64) ([]byte, error) { return make([]byte, n), nil })
	if err != nil || r.Why != "" {
		c.Fatal(err, r.Text)
	}
	return r, reply
}

// started serves a connection to a server with one object.
func started(t *testing.T) (*core, *object) {
	there := &object{}
	server := httptest.NewServer(there)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": server.URL, "AWS_ACCESS_KEY_ID": "throwaway", "AWS_SECRET_ACCESS_KEY": "throwaway", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	client, err := newClient()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		serve(pair[1], client, nil)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = unix.Close(pair[0])
		<-ended
	})
	return &core{T: t, socket: pair[0]}, there
}

func TestBodiesGoThroughMemoryOrTheSocket(t *testing.T) {
	c, there := started(t)
	const length = 1 << 20
	descriptor, err := unix.MemfdCreate("test", 0)
	if err == nil {
		err = unix.Ftruncate(descriptor, length)
	}
	if err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(descriptor, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	c.ask(wire.Request{Op: wire.Put}, []byte("by the socket"))
	if _, reply := c.ask(wire.Request{Op: wire.Get, From: 3, Bytes: 100}, nil); string(reply) != "the socket" {
		t.Fatalf("%q", reply)
	}
	n := copy(memory, bytes.Repeat([]byte("by the memory "), 1000))
	c.rights = unix.UnixRights(descriptor)
	c.ask(wire.Request{Op: wire.Put, Share: length, Held: int64(n)}, nil)
	if err := unix.Close(descriptor); err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat("by the memory ", 1000); string(there.bytes) != want {
		t.Fatalf("the server has got %d bytes, and %d were sent", len(there.bytes), len(want))
	}
	clear(memory)
	r, reply := c.ask(wire.Request{Op: wire.Get, From: 3, Bytes: 50, Return: true}, nil)
	if len(reply) > 0 || r.Held != 50 || !bytes.Equal(memory[:50], there.bytes[3:53]) || memory[50] != 0 {
		t.Fatalf("%d bytes by the socket, %d by the memory: %q", len(reply), r.Held, memory[:60])
	}
	r, reply = c.ask(wire.Request{Op: wire.Get, Bytes: length + 1, Return: true}, nil) // there is no room for so many in the memory
	if r.Held != 0 || !bytes.Equal(reply, there.bytes) {
		t.Fatalf("%d bytes by the socket, %d by the memory", len(reply), r.Held)
	}
}

func TestMessagesThatNameNoMemoryEndTheConnection(t *testing.T) {
	for name, q := range map[string]wire.Request{
		"no descriptor": {Op: wire.Put, Share: 100},
		"no memory":     {Op: wire.Put, Held: 100},
		"negative":      {Op: wire.Put, Held: -1},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := started(t)
			if err := wire.Write(c, &q, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := wire.Read(c, &wire.Reply{}, nil); err == nil {
				t.Fatal("it was answered")
			}
		})
	}
}
