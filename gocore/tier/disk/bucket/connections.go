package bucket

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/wire"
)

const (
	// answerWithin bounds the wait for a reply, in seconds. The program bounds its requests itself, and only one that is stopped takes longer.
	answerWithin = 20 * 60
	// Bodies of leastShared to mostShared bytes go through memory that the program maps too: a copy costs less than a way through a socket.
	leastShared = 256 << 10
	mostShared  = 32 << 20
	// idleAfter is how long a connection keeps its memory after a request.
	idleAfter = time.Second

	sharedPurpose = "transfer buffers"
)

// Connections are the sockets of a program velocpy-s3. Each carries one request at a time.
type Connections struct{ pool *pool }

// NewConnections takes sockets over. They are closed, which ends the program, when nothing uses the Connections any more.
func NewConnections(descriptors []int) (*Connections, error) {
	c := &Connections{&pool{idle: idleAfter}}
	c.pool.put = sync.NewCond(&c.pool.mu)
	for _, fd := range descriptors {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: answerWithin}); err != nil {
			return nil, fmt.Errorf("a socket of velocpy-s3: %w", err)
		}
		c.pool.free = append(c.pool.free, &connection{socket: socket(fd), descriptor: -1})
	}
	runtime.AddCleanup(c, (*pool).close, c.pool)
	return c, nil
}

// Ask implements Server.
func (c *Connections) Ask(q *wire.Request, body, into []byte) (r wire.Reply, n int, err error) {
	x := c.pool.take(0)
	defer func() {
		c.pool.giveBack(x)
		runtime.KeepAlive(c)
	}()
	return x.ask(q, body, into)
}

// unlent is how many connections are not lent, so that callers that have borrowed some can send other requests.
const unlent = 4

// lend takes a connection, whose memory has room for bodies of so many bytes; nil if there is none.
func (c *Connections) lend(bytes int64) *loan {
	if bytes < leastShared || bytes > mostShared {
		return nil
	}
	x := c.pool.take(unlent)
	if x == nil {
		return nil
	}
	if x.socket < 0 || !x.share() {
		c.pool.giveBack(x)
		return nil
	}
	return &loan{c, x}
}

// loan is a connection that one caller has. It carries one request at a time. A body that its bytes have is not copied.
type loan struct {
	of *Connections
	x  *connection
}

func (l *loan) bytes(n int64) []byte { return l.x.memory.Bytes(0, n) }

// Ask implements Server.
func (l *loan) Ask(q *wire.Request, body, into []byte) (wire.Reply, int, error) {
	return l.x.ask(q, body, into)
}

// end gives the connection back. Nothing uses its bytes any more.
func (l *loan) end() {
	l.of.pool.giveBack(l.x)
	runtime.KeepAlive(l.of)
}

// pool has the connections that carry no request. The one that was used last is used next, so that few have memory.
type pool struct {
	mu    sync.Mutex
	put   *sync.Cond
	free  []*connection
	timer *time.Timer   // runs while a free connection has memory; nil: it does not
	idle  time.Duration // after which a connection that carries no request has no memory
}

// take waits for a connection. With spare it does not wait: it returns nil unless more than so many are free.
func (p *pool) take(spare int) *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) <= spare {
		if spare > 0 {
			return nil
		}
		p.put.Wait()
	}
	last := len(p.free) - 1
	x := p.free[last]
	p.free = p.free[:last]
	return x
}

// giveBack puts a connection behind the others, or before them if its socket is closed.
func (p *pool) giveBack(x *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.socket < 0 {
		x.close()
		p.free = append([]*connection{x}, p.free...)
	} else {
		p.free = append(p.free, x)
	}
	x.used = time.Now()
	if x.memory != nil && p.timer == nil {
		p.timer = time.AfterFunc(p.idle, p.expire)
	}
	p.put.Signal()
}

// expire frees the memory of connections that have carried no request for a while.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	again := false
	for _, x := range p.free {
		if time.Since(x.used) >= p.idle {
			x.release()
		}
		again = again || x.memory != nil
	}
	if again {
		p.timer = time.AfterFunc(p.idle, p.expire)
	}
}

// close closes all connections. None carries a request.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.free {
		x.close()
	}
}

// connection is a socket, and memory that the program maps too once a body has needed it.
type connection struct {
	socket     socket // negative: it is closed
	memory     *memory.Mapping
	descriptor int  // of the memory
	known      bool // the program has the memory too
	barred     bool // there is no memory, and none is made
	used       time.Time
}

// ask carries a request out. Bytes of the reply go to into. After an error the socket is closed, because its next bytes may be the rest of a message.
func (x *connection) ask(q *wire.Request, body, into []byte) (r wire.Reply, n int, err error) {
	if x.socket < 0 {
		return r, 0, fmt.Errorf("%w: %w", ErrNoProgram, unix.EPIPE)
	}
	if n, err = x.exchange(*q, &r, body, into); err != nil {
		_ = unix.Close(int(x.socket)) // nothing is relied on that was written to it
		x.socket = -1
		return r, 0, fmt.Errorf("%w: %w", ErrNoProgram, err)
	}
	return r, n, nil
}

func (x *connection) exchange(q wire.Request, r *wire.Reply, body, into []byte) (n int, err error) {
	var rights []byte
	if length := max(len(body), len(into)); length >= leastShared && length <= mostShared && x.share() {
		if !x.known {
			q.Share, rights, x.known = mostShared, unix.UnixRights(x.descriptor), true
		}
		if shared := x.memory.Bytes(0, int64(len(body))); len(body) > 0 && &shared[0] != &body[0] {
			copy(shared, body)
		}
		q.Held, q.Return, body = int64(len(body)), len(into) > 0, nil
	}
	if err := wire.Write(&sender{x.socket, rights}, &q, body); err != nil {
		return 0, err
	}
	got, err := wire.Read(x.socket, r, func(n int64) ([]byte, error) {
		if n > int64(len(into)) {
			return nil, wire.ErrMessage
		}
		return into[:n], nil
	})
	if err != nil || r.Held == 0 {
		return len(got), err
	}
	if !q.Return || len(got) > 0 || r.Held < 0 || r.Held > int64(len(into)) {
		return 0, wire.ErrMessage
	}
	return copy(into, x.memory.Bytes(0, r.Held)), nil
}

// share makes the memory, unless the connection has it. It returns false if there is none: then bodies go through the socket.
func (x *connection) share() bool {
	if x.memory != nil || x.barred {
		return x.memory != nil
	}
	m, descriptor, err := memory.MapShared(sharedPurpose, mostShared)
	if x.barred = err != nil; x.barred {
		return false
	}
	x.memory, x.descriptor = m, descriptor
	return true
}

// release frees the memory. The program has it mapped until it gets another one, but without pages.
func (x *connection) release() {
	if x.memory == nil {
		return
	}
	_, _, _ = x.memory.Release(), x.memory.Unmap(), unix.Close(x.descriptor) // after an error, the pages stay as long as the program has them mapped
	x.memory, x.descriptor, x.known = nil, -1, false
}

// close closes the socket, unless an error has closed it before, and frees the memory.
func (x *connection) close() {
	if x.socket >= 0 {
		_ = unix.Close(int(x.socket)) // nothing is relied on that was written to it
	}
	x.socket, x.barred = -1, true
	x.release()
}

// sender writes to a socket. Descriptors go with the first bytes.
type sender struct {
	socket
	rights []byte
}

// Write implements io.Writer. A socket whose other end is closed raises no signal.
func (s *sender) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := unix.SendmsgN(int(s.socket), p[done:], s.rights, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, err
		}
		s.rights = nil
		done += n
	}
	return done, nil
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
