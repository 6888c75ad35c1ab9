package bucket

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/memory"
	"velocpy/gocore/base/wire"
)

// program is the other end of a connection. It keeps the last body of a request, and answers it to a request for bytes.
type program struct {
	t          *testing.T
	socket     int
	descriptor int
	memory     []byte

	mu     sync.Mutex
	shares int
	body   []byte
	held   bool                // the last body lay in the memory
	change func(r *wire.Reply) // nil: nothing is changed
	drop   bool                // the connection is closed instead of a reply
}

// seen returns how often the connection got memory, the last body, and whether it lay there.
func (p *program) seen() (shares int, body []byte, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shares, p.body, p.held
}

// fail sets what the program does wrong.
func (p *program) fail(change func(r *wire.Reply), drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change, p.drop = change, drop
}

// Read implements io.Reader.
func (p *program) Read(b []byte) (int, error) {
	control := make([]byte, 64)
	n, length, _, _, err := unix.Recvmsg(p.socket, b, control, 0)
	if err != nil || n == 0 {
		return 0, errors.Join(unix.EPIPE, err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:length])
	for i := range messages {
		descriptors, failed := unix.ParseUnixRights(&messages[i])
		p.descriptor, err = descriptors[0], errors.Join(err, failed)
	}
	return n, err
}

// Write implements io.Writer.
func (p *program) Write(b []byte) (int, error) { return unix.Write(p.socket, b) }

func (p *program) serve() {
	defer func() { _ = unix.Close(p.socket) }()
	for {
		var q wire.Request
		body, err := wire.Read(p, &q, func(n int64) ([]byte, error) { return make([]byte, n), nil })
		if err != nil {
			return
		}
		r, reply, ok := p.answer(&q, body)
		if !ok || wire.Write(p, &r, reply) != nil {
			return
		}
	}
}

func (p *program) answer(q *wire.Request, body []byte) (r wire.Reply, reply []byte, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q.Share > 0 {
		p.shares++
		memory, err := unix.Mmap(p.descriptor, 0, int(q.Share), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			p.t.Error(err)
		}
		p.memory = memory
	}
	switch p.held = q.Held > 0; {
	case q.Op == wire.Get:
		reply = p.body[:min(q.Bytes, int64(len(p.body)))]
	case p.held:
		p.body = bytes.Clone(p.memory[:q.Held])
	default:
		p.body = body
	}
	if q.Return {
		r.Held, reply = int64(copy(p.memory, reply)), nil
	}
	if p.change != nil {
		p.change(&r)
	}
	return r, reply, !p.drop
}

// connected starts programs with one connection each.
func connected(t *testing.T, count int) (*Connections, []*program) {
	var ours []int
	programs := make([]*program, count)
	for i := range programs {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		ours = append(ours, pair[0])
		programs[i] = &program{t: t, socket: pair[1]}
		go programs[i].serve()
	}
	c, err := NewConnections(ours)
	if err != nil {
		t.Fatal(err)
	}
	c.pool.idle = time.Hour // a slow machine does not free memory between two requests
	t.Cleanup(c.pool.close)
	return c, programs
}

func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i * i >> 3)
	}
	return p
}

func TestBodiesComeBackByEitherWay(t *testing.T) {
	c, programs := connected(t, 1)
	for _, n := range []int{1, leastShared - 1, leastShared, 3<<20 + 1, mostShared, mostShared + 1, 5, leastShared + 7} {
		sent := pattern(n)
		if _, _, err := c.Ask(&wire.Request{Op: wire.Put}, sent, nil); err != nil {
			t.Fatal(n, err)
		}
		_, body, held := programs[0].seen()
		if large := n >= leastShared && n <= mostShared; held != large || !bytes.Equal(body, sent) {
			t.Fatalf("%d bytes: in the memory %t, the same %t", n, held, bytes.Equal(body, sent))
		}
		for _, room := range []int{n, n + 1, n - 1} {
			into := make([]byte, room)
			_, got, err := c.Ask(&wire.Request{Op: wire.Get, Bytes: int64(room)}, nil, into)
			if want := min(n, room); err != nil || got != want || !bytes.Equal(into[:got], sent[:want]) {
				t.Fatalf("%d bytes into %d: %d, %v", n, room, got, err)
			}
		}
	}
	if shares, _, _ := programs[0].seen(); shares != 1 {
		t.Fatalf("the connection got memory %d times", shares)
	}
}

func TestIdleConnectionsKeepNoMemory(t *testing.T) {
	before := memory.InUse(sharedPurpose)
	c, programs := connected(t, 3)
	sent := pattern(4 << 20)
	for round := range 3 {
		for range 6 {
			if _, _, err := c.Ask(&wire.Request{Op: wire.Put}, sent, nil); err != nil {
				t.Fatal(err)
			}
		}
		into := make([]byte, len(sent))
		if _, n, err := c.Ask(&wire.Request{Op: wire.Get, Bytes: int64(len(into))}, nil, into); err != nil || !bytes.Equal(into[:n], sent) {
			t.Fatal(n, err)
		}
		used := 0
		for _, p := range programs {
			shares, _, _ := p.seen()
			used += shares
		}
		if used != round+1 {
			t.Fatalf("connections got memory %d times for requests one after the other", used)
		}
		x := c.pool.free[2]
		for _, idle := range []time.Duration{0, c.pool.idle} {
			c.pool.mu.Lock()
			x.used = time.Now().Add(-idle)
			c.pool.mu.Unlock()
			c.pool.expire()
			if held := memory.InUse(sharedPurpose) - before; held != mostShared && idle == 0 {
				t.Fatalf("a connection that was used just now has %d MiB", held>>20)
			}
		}
		if held := memory.InUse(sharedPurpose) - before; held != 0 || x.memory != nil {
			t.Fatalf("idle connections have %d MiB", held>>20)
		}
	}
}

func TestRepliesThatContradictThemselvesAreErrors(t *testing.T) {
	for name, change := range map[string]func(r *wire.Reply){
		"longer than there is room": func(r *wire.Reply) { r.Held++ },
		"longer than the memory":    func(r *wire.Reply) { r.Held = mostShared + 1 },
		"negative":                  func(r *wire.Reply) { r.Held = -1 },
	} {
		c, programs := connected(t, 2)
		into := make([]byte, leastShared)
		if _, _, err := c.Ask(&wire.Request{Op: wire.Put}, into, nil); err != nil {
			t.Fatal(name, err)
		}
		programs[1].fail(change, false) // the connection that was used last is used next
		if _, _, err := c.Ask(&wire.Request{Op: wire.Get, Bytes: leastShared}, nil, into); !errors.Is(err, ErrNoProgram) {
			t.Fatal(name, err)
		}
		for range 3 { // the other connection goes on
			if _, _, err := c.Ask(&wire.Request{Op: wire.Put}, into, nil); err != nil {
				t.Fatal(name, err)
			}
		}
	}
}

func TestAProgramThatHasEndedIsAnError(t *testing.T) {
	c, programs := connected(t, 1)
	programs[0].fail(nil, true)
	for range 2 {
		if _, _, err := c.Ask(&wire.Request{Op: wire.Put, Key: strings.Repeat("k", 100)}, pattern(leastShared), nil); !errors.Is(err, ErrNoProgram) {
			t.Fatal(err)
		}
	}
}

func TestLentMemoryIsSentAsItIs(t *testing.T) {
	const count = unlent + 2
	c, programs := connected(t, count)
	if c.lend(leastShared-1) != nil || c.lend(mostShared+1) != nil {
		t.Fatal("memory is lent for bodies that do not go through it")
	}
	first, second := c.lend(mostShared), c.lend(leastShared)
	if first == nil || second == nil || c.lend(leastShared) != nil {
		t.Fatal("all but some connections are lent, and no more")
	}
	for _, n := range []int64{mostShared, leastShared + 1, 10} {
		p := first.bytes(n)
		copy(p, pattern(int(n)))
		if _, _, err := first.Ask(&wire.Request{Op: wire.Part}, p, nil); err != nil {
			t.Fatal(err)
		}
		if _, body, held := programs[count-1].seen(); held != (n >= leastShared) || !bytes.Equal(body, pattern(int(n))) {
			t.Fatalf("%d bytes: in the memory %t, the same %t", n, held, bytes.Equal(body, pattern(int(n))))
		}
	}
	if _, _, err := c.Ask(&wire.Request{Op: wire.Put}, pattern(leastShared), nil); err != nil {
		t.Fatal("the others carry requests meanwhile:", err)
	}
	programs[count-2].fail(nil, true)
	for range 2 {
		if _, _, err := second.Ask(&wire.Request{Op: wire.Part}, second.bytes(leastShared), nil); !errors.Is(err, ErrNoProgram) {
			t.Fatal(err)
		}
	}
	clear(second.bytes(leastShared)) // the memory stays until the loan ends
	second.end()
	first.end()
	if x := c.pool.free[0]; x.socket >= 0 || x.memory != nil {
		t.Fatal("a closed connection keeps its memory, or is used before others")
	}
	for range count {
		if _, _, err := c.Ask(&wire.Request{Op: wire.Put}, pattern(leastShared), nil); err != nil {
			t.Fatal(err)
		}
	}
}
