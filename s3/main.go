// Command velocpy-s3 sends the requests of a core to an object store. Its arguments are the descriptors of the sockets that connect it to the core. It serves each
// connection in a goroutine, and ends when the core has closed them all, or has died.
//
// It takes the endpoint, the region and the credentials from its environment, from the files in ~/.aws, or from the instance's metadata, as other clients do.
package main

import (
	"errors"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"velocpy/gocore/base/wire"
)

// parentEvery is how often the program looks whether the process that started it is still there: a child that this one has forked may keep the sockets open.
const parentEvery = 5 * time.Second

func main() {
	client, err := newClient()
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(parentEvery)
		}
		os.Exit(0)
	}()
	var busy sync.WaitGroup
	for _, number := range os.Args[1:] {
		fd, bad := strconv.Atoi(number)
		if bad != nil {
			os.Exit(2)
		}
		busy.Add(1)
		go func() {
			defer busy.Done()
			serve(os.NewFile(uintptr(fd), "connection"), client, err)
		}()
	}
	busy.Wait()
}

// serve answers the requests of a connection until it is closed. unusable says why no request can be sent; nil: they can.
func serve(socket *os.File, client *client, unusable error) {
	defer socket.Close()
	for serveOne(socket, client, unusable) == nil {
	}
}

// buffers are those that no request uses: there are as many as requests that were under way at once.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

func serveOne(socket *os.File, client *client, unusable error) error {
	var buffer *[]byte // none while the connection waits for a request
	defer func() {
		if buffer != nil {
			buffers.Put(buffer)
		}
	}()
	room := func(n int64) ([]byte, error) {
		if buffer == nil {
			buffer = buffers.Get().(*[]byte)
		}
		if int64(cap(*buffer)) < n {
			*buffer = make([]byte, n)
		}
		return (*buffer)[:n], nil
	}
	var q wire.Request
	body, err := wire.Read(socket, &q, room)
	if err != nil {
		return err
	}
	r, reply := wire.Reply{Why: wire.Refused}, []byte(nil)
	if unusable != nil {
		r.Text = unusable.Error()
	} else {
		r, reply = client.answer(&q, body, room)
	}
	return wire.Write(socket, &r, reply)
}

// cause is an error without the address that a request was sent to: signatures may be part of that.
func cause(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
