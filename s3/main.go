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
			serve(fd, client, err)
		}()
	}
	busy.Wait()
}

// cause is an error without the address that a request was sent to: signatures may be part of that.
func cause(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
