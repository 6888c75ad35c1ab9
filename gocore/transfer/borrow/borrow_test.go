package borrow

import (
	"testing"
	"time"
)

// Copies of Beside run at once. Abandon waits for all of them, and no copy begins afterwards.
func TestBeside(t *testing.T) {
	src := New(nil)
	inside, end := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			ended <- src.Beside(func() {
				inside <- struct{}{}
				<-end
			})
		}()
	}
	<-inside
	<-inside // both are
	back := make(chan struct{})
	go func() {
		src.Abandon()
		close(back)
	}()
	for !src.Abandoned() {
		time.Sleep(time.Millisecond)
	}
	select {
	case <-back:
		t.Error("the caller has its memory back while it is written")
	case <-time.After(5 * time.Millisecond):
	}
	close(end)
	<-back
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := src.Beside(func() { t.Error("it is written again") }); err != ErrAbandoned {
		t.Error(err)
	}
}
