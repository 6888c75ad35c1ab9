package main

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// counting is a transport that counts what it sends and receives, and knows by how much the server's clock is ahead.
type counting struct {
	next                     http.RoundTripper
	requests, sent, received atomic.Int64

	mu    sync.Mutex
	ahead time.Duration
}

func newCounting(next http.RoundTripper) *counting { return &counting{next: next} }

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(q *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	if q.ContentLength > 0 {
		c.sent.Add(q.ContentLength)
	}
	r, err := c.next.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	if at, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		c.mu.Lock()
		c.ahead = time.Until(at)
		c.mu.Unlock()
	}
	r.Body = &countedBody{r.Body, c}
	return r, nil
}

// age is how long ago a time of the server was, by a clock that counts seconds.
func (c *counting) age(of time.Time) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(time.Now().Add(c.ahead).Sub(of).Seconds(), 0)
}

type countedBody struct {
	io.ReadCloser
	c *counting
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.c.received.Add(int64(n))
	return n, err
}
