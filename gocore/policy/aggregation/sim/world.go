package sim

import "velocpy/gocore/policy/virtual"

// station is a resource with one server or several. Each serves one request at once, and requests are served in the order in which they come.
type station struct {
	rate float64 // bytes per ns of one server
	cost int64   // ns of each request, beside its bytes
	free []int64 // by server: when it has served what it has taken
}

func newStation(servers int, rate, cost float64) *station {
	return &station{rate: rate / 1e9, cost: nanoseconds(cost), free: make([]int64, servers)}
}

// serve takes a request, and tells when it is begun and when it is served.
func (s *station) serve(now, bytes int64) (begin, end int64) {
	first := 0
	for i, at := range s.free {
		if at < s.free[first] {
			first = i
		}
	}
	begin = max(now, s.free[first])
	end = begin + s.cost + int64(float64(bytes)/s.rate)
	s.free[first] = end
	return begin, end
}

func nanoseconds(seconds float64) int64 { return int64(seconds * 1e9) }

// node is a node's resources.
type node struct {
	number  int
	disk    *station
	cores   *station
	out, in *station // messages
	store   *station // writes to the storage; nil: nothing is between it and the servers
}

// object is what a server has of a file.
type object struct{ file, server int }

// lock says which node may write to an object.
type lock struct {
	node    int
	granted int64 // since when
	until   int64 // when what it has written is served
}

// world is a cluster at work.
type world struct {
	virtual.Clock
	c        *Cluster
	nodes    []*node
	servers  []*station
	metadata *station
	shared   map[int]bool // files that several nodes write to
	locks    map[object]*lock

	readDelay, linkDelay, storeDelay, lockDelay, syncDelay int64 // ns

	wrote   func(file int, at, bytes int64) // is told what arrives at the servers; nil: nothing is
	planned func(copies []Copy)             // is told what each plan copies; nil: nothing is
}

func newWorld(c *Cluster, nodes []int) *world {
	w := &world{
		c: c, metadata: newStation(1, 1, 1/c.CreateRate), shared: map[int]bool{}, locks: map[object]*lock{},
		readDelay: nanoseconds(c.ReadDelay), linkDelay: nanoseconds(c.LinkDelay), storeDelay: nanoseconds(c.StoreDelay), lockDelay: nanoseconds(c.LockDelay), syncDelay: nanoseconds(c.SyncDelay),
	}
	for range c.Servers {
		w.servers = append(w.servers, newStation(1, c.ServerRate, c.ServerCost))
	}
	most := 0
	for _, n := range nodes {
		most = max(most, n)
	}
	for number := range most + 1 {
		n := &node{number: number}
		switch {
		case c.OneMachine && number > 0:
			*n = *w.nodes[0]
			n.number = number
		case c.OneMachine:
			memory := newStation(1, c.LinkRate, 0)
			n.disk, n.cores, n.out, n.in = w.servers[0], newStation(c.Cores, c.HashRate, 0), memory, memory
		default:
			n.disk, n.cores, n.store = newStation(1, c.ReadRate, 0), newStation(c.Cores, c.HashRate, 0), newStation(1, c.StoreRate/c.slowness(number), 0)
			n.out, n.in = newStation(1, c.LinkRate, 0), newStation(1, c.LinkRate, 0)
		}
		w.nodes = append(w.nodes, n)
	}
	return w
}

// after calls do in so many ns.
func (w *world) after(ns int64, do func()) { w.At(w.Now()+ns, do) }

// drain plays everything that is scheduled.
func (w *world) drain() {
	for w.Step() {
	}
}

// pass lets time pass in which nothing else happens.
func (w *world) pass(ns int64) {
	w.after(ns, func() {})
	w.drain()
}

// hash takes a checksum of bytes so many times by one core of a node.
func (w *world) hash(n *node, bytes int64, times int, done func()) {
	if times == 0 {
		done()
		return
	}
	_, end := n.cores.serve(w.Now(), bytes*int64(times))
	w.At(end, done)
}

// read reads bytes of the local disk.
func (w *world) read(n *node, bytes int64, done func()) {
	w.after(w.readDelay, func() {
		_, end := n.disk.serve(w.Now(), bytes)
		w.At(end, done)
	})
}

// send brings a message from a node to another. Its first bytes arrive while the last ones leave.
func (w *world) send(from, to *node, bytes int64, done func()) {
	begin, end := from.out.serve(w.Now(), bytes)
	if from.out == to.in { // one memory
		w.At(end+w.linkDelay, done)
		return
	}
	w.At(begin+w.linkDelay, func() {
		_, arrived := to.in.serve(w.Now(), bytes)
		w.At(max(arrived, end+w.linkDelay), done)
	})
}

// create makes a file: one of many in its directory, whose metadata server makes one after the other.
func (w *world) create(done func()) {
	w.after(w.storeDelay, func() {
		_, end := w.metadata.serve(w.Now(), 0)
		w.At(end+w.storeDelay, done)
	})
}

// write writes bytes to their place in a file, and waits for the servers' answers.
func (w *world) write(n *node, file int, at, bytes int64, done func()) {
	begin, left := w.Now(), w.Now()
	if n.store != nil {
		begin, left = n.store.serve(w.Now(), bytes)
	}
	w.At(begin+w.storeDelay, func() {
		if w.wrote != nil {
			w.wrote(file, at, bytes)
		}
		w.arrive(&writing{w: w, by: n.number, file: file, left: left, done: done}, at, bytes)
	})
}

// writing is one write at the servers.
type writing struct {
	w      *world
	by     int // node
	file   int
	left   int64 // when its last bytes have left the node
	parts  int   // that are not served
	latest int64 // when the last of its parts is served
	done   func()
}

// arrive hands the parts of a write to the servers that have its stripes.
func (w *world) arrive(x *writing, at, bytes int64) {
	x.parts = 1 // until all are counted
	for bytes > 0 {
		part := min(bytes, w.c.Stripe-at%w.c.Stripe)
		server := (x.file + int(at/w.c.Stripe)) % w.c.Servers
		x.parts++
		w.locked(object{x.file, server}, x.by, func(held *lock) {
			_, end := w.servers[server].serve(w.Now(), part)
			if held != nil {
				held.until = max(held.until, end)
			}
			x.served(end)
		})
		at, bytes = at+part, bytes-part
	}
	x.served(0)
}

// served notes that a part is served by a moment, and ends the write behind the last one.
func (x *writing) served(by int64) {
	x.latest = max(x.latest, by)
	if x.parts--; x.parts == 0 {
		x.w.At(max(x.latest, x.left+x.w.storeDelay)+x.w.storeDelay, x.done)
	}
}

// locked calls do as soon as a node may write to an object: at once, if no other node has written to it last.
func (w *world) locked(of object, by int, do func(held *lock)) {
	if w.lockDelay == 0 || !w.shared[of.file] {
		do(nil)
		return
	}
	held := w.locks[of]
	if held == nil {
		held = &lock{node: by}
		w.locks[of] = held
	}
	if held.node != by {
		held.node, held.granted = by, max(w.Now(), held.granted, held.until)+w.lockDelay
	}
	if held.granted <= w.Now() {
		do(held)
		return
	}
	w.At(held.granted, func() { do(held) })
}
