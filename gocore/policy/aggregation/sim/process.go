package sim

import (
	"slices"

	"velocpy/gocore/policy/aggregation"
)

// Of velocpy/archive/shares.py: messages of one rank that a leader waits for at once, bytes of a message beside those of a checkpoint, and ns between two looks.
const (
	ahead                 = 2
	trailer               = 32
	shortestLook, longest = 100_000, 2_000_000
)

// message is a piece of a copy.
type message struct {
	file      int
	at, bytes int64
	came      bool // the leader has it
}

// way is the messages from one rank to another.
type way struct {
	from, to  *process
	unread    []message  // of the sender
	reading   *message   // of the sender: it is being read, or was read
	read      bool       // of the sender: it can be sent
	posted    []*message // sent, and not asked for by the receiver yet
	unwanted  int        // of the receiver: messages that it does not wait for yet
	expecting int        // of the receiver: that it waits for, and that are not sent yet
	coming    []*message // of the receiver: that it waits for, in their order, and those that have come
}

// process is what one rank does of a plan. Its steps are those of _Stages in shares.py: each does what can be done without waiting.
type process struct {
	w      *world
	push   *Push
	number int
	node   *node

	sent, received []*way // in the order in which the plan names them
	copied         []Copy
	first          int // whose turn it is to be read for

	outgoing, incoming int // buffers that are free
	copying            int // copies under way
	written, gone      int // buffers of writes and of sent messages that are done, and not given back
	busy               int // threads
	tasks              []func(done func())
	reads, writes      int // under way, or not looked at since

	writing stopwatch

	idle  int64 // since when there was nothing to do
	woken int64 // when it looks next, if something has come; -1: nothing has
	ended int64

	sentCount, receivedCount     int64 // messages
	mostIn, mostOut, mostCopying int   // buffers at once
}

func newProcess(w *world, p *Push, number int) *process {
	return &process{w: w, push: p, number: number, node: w.nodes[p.Nodes[number]], outgoing: p.Buffers, incoming: p.Buffers, woken: -1}
}

// share gives every rank its share of a plan.
func share(plan *plan, all []*process, buffer int64) {
	type pair struct{ from, to int }
	ways := map[pair]*way{}
	for _, p := range all {
		p.sent, p.received, p.first, p.writing = nil, nil, 0, stopwatch{}
	}
	for _, c := range plan.copies {
		if c.Reader == c.Writer {
			all[c.Writer].copied = append(all[c.Writer].copied, c.pieces()...)
			continue
		}
		x := ways[pair{c.Reader, c.Writer}]
		if x == nil {
			x = &way{from: all[c.Reader], to: all[c.Writer]}
			ways[pair{c.Reader, c.Writer}] = x
			x.from.sent = append(x.from.sent, x)
			x.to.received = append(x.to.received, x)
		}
		for at := int64(0); at < c.Bytes; at += buffer {
			x.unread = append(x.unread, message{file: c.File, at: c.At + at, bytes: min(buffer, c.Bytes-at)})
			x.unwanted++
		}
	}
}

// stopwatch measures how long at least one of several writes is under way, and their bytes.
type stopwatch struct {
	active int
	began  int64
	passed int64 // ns
	bytes  int64
}

// store writes bytes to the storage.
func (p *process) store(file int, at, bytes int64, done func()) {
	x := &p.writing
	if x.active++; x.active == 1 {
		x.began = p.w.Now()
	}
	p.w.write(p.node, file, at, bytes, func() {
		x.bytes += bytes
		if x.active--; x.active == 0 {
			x.passed += p.w.Now() - x.began
		}
		done()
	})
}

// run does all that can be done, and then looks again when something has come.
func (p *process) run() {
	p.woken = -1
	for p.step() {
	}
	p.idle = p.w.Now()
	if p.ended < 0 && !p.unfinished() {
		p.ended = p.w.Now()
	}
}

// begin begins with a share.
func (p *process) begin() {
	p.ended = -1
	p.run()
}

// wake makes the process look: at the next of the moments at which it looks while it waits.
func (p *process) wake() {
	at := nextLook(p.idle, p.w.Now(), shortestLook, longest)
	if p.woken >= 0 && p.woken <= at {
		return
	}
	p.woken = at
	p.w.At(at, func() {
		if p.woken == at {
			p.run()
		}
	})
}

// nextLook is the first moment from now on at which a process looks that waits since a moment: pauses double from the shortest to the longest.
func nextLook(since, now, shortest, longest int64) int64 {
	at, pause := since, shortest
	for {
		at += pause
		if at >= now {
			return at
		}
		if pause *= 2; pause >= longest {
			return at + (now-at+longest-1)/longest*longest
		}
	}
}

func (p *process) unfinished() bool {
	if p.reads+p.writes+p.copying+p.written+p.gone+len(p.copied) > 0 || p.outgoing < p.push.Buffers || p.incoming < p.push.Buffers {
		return true
	}
	return slices.ContainsFunc(p.sent, func(x *way) bool { return len(x.unread) > 0 }) ||
		slices.ContainsFunc(p.received, func(x *way) bool { return x.unwanted > 0 || x.waiting() > 0 })
}

// step does what can be done without waiting; whether it was anything.
func (p *process) step() bool {
	some := p.receive()
	some = p.write() || some
	some = giveBack(&p.written, &p.incoming) || some
	some = p.send() || some
	some = giveBack(&p.gone, &p.outgoing) || some
	some = p.read() || some
	return p.copy() || some
}

// receive lets the next messages of all ranks come, by turns, as long as there are buffers.
func (p *process) receive() (some bool) {
	for _, x := range p.received {
		if x.unwanted > 0 && x.waiting() < ahead && p.incoming > 0 {
			x.unwanted--
			p.incoming--
			p.mostIn = max(p.mostIn, p.push.Buffers-p.incoming)
			x.expecting++
			x.meet()
			some = true
		}
	}
	return some
}

// meet begins to bring messages that the sender has sent and the receiver waits for.
func (x *way) meet() {
	for x.expecting > 0 && len(x.posted) > 0 {
		m := x.posted[0]
		x.posted = x.posted[1:]
		x.expecting--
		x.coming = append(x.coming, m)
		x.to.w.send(x.from.node, x.to.node, m.bytes+trailer, func() {
			m.came = true
			x.from.gone++
			x.from.wake()
			x.to.wake()
		})
	}
}

// waiting is the number of messages that the receiver waits for or has not looked at.
func (x *way) waiting() int { return len(x.coming) + x.expecting }

// write hands what has come over to the threads that write.
func (p *process) write() (some bool) {
	for _, x := range p.received {
		for len(x.coming) > 0 && x.coming[0].came {
			m := x.coming[0]
			x.coming = x.coming[1:]
			p.receivedCount++
			p.writes++
			p.submit(func(done func()) {
				p.w.hash(p.node, m.bytes, 1, func() {
					p.store(m.file, m.at, m.bytes, func() {
						p.writes--
						p.written++
						done()
					})
				})
			})
			some = true
		}
	}
	return some
}

// send sends what was read.
func (p *process) send() (some bool) {
	for _, x := range p.sent {
		if x.read {
			p.reads--
			p.sentCount++
			x.posted = append(x.posted, x.reading)
			x.reading, x.read = nil, false
			x.meet()
			some = true
		}
	}
	return some
}

// giveBack gives back the buffers of what is written, or sent; whether there were any.
func giveBack(done, free *int) bool {
	n := *done
	*free, *done = *free+n, 0
	return n > 0
}

// read reads the next message for each rank that nothing is read for, by turns, as long as there are buffers.
func (p *process) read() (some bool) {
	var ranks []*way
	for _, x := range p.sent {
		if len(x.unread) > 0 && x.reading == nil {
			ranks = append(ranks, x)
		}
	}
	begin := p.first
	for i := range ranks {
		if p.outgoing == 0 {
			break
		}
		x := ranks[(begin+i)%len(ranks)]
		p.outgoing--
		p.mostOut = max(p.mostOut, p.push.Buffers-p.outgoing)
		p.reads++
		x.reading = &x.unread[0]
		x.unread = x.unread[1:]
		p.submit(func(done func()) {
			p.w.read(p.node, x.reading.bytes, func() {
				p.w.hash(p.node, x.reading.bytes, 2, func() { // with the store's checksums, and for the leader
					x.read = true
					done()
				})
			})
		})
		p.first++
		some = true
	}
	return some
}

// copy copies what lies on this node, with the threads that nothing else needs.
func (p *process) copy() (some bool) {
	for len(p.copied) > 0 && p.copying+p.writes+p.written+p.reads < p.push.Writers {
		c := p.copied[0]
		p.copied = p.copied[1:]
		p.copying++
		p.mostCopying = max(p.mostCopying, p.copying)
		p.submit(func(done func()) {
			p.w.copy(p.node, &c, p.store, func() {
				p.copying--
				done()
			})
		})
		some = true
	}
	return some
}

// copy reads a copy and writes it, a piece at a time.
func (w *world) copy(n *node, c *Copy, write func(file int, at, bytes int64, done func()), done func()) {
	at := int64(0)
	var next func()
	next = func() {
		if at == c.Bytes {
			done()
			return
		}
		bytes, to := min(c.Bytes-at, aggregation.CopyBytes), c.At+at
		at += bytes
		w.read(n, bytes, func() {
			w.hash(n, bytes, 1, func() { write(c.File, to, bytes, next) })
		})
	}
	next()
}

// submit gives a task to a thread, as soon as one is free.
func (p *process) submit(task func(done func())) {
	if p.busy == p.push.Writers {
		p.tasks = append(p.tasks, task)
		return
	}
	p.busy++
	p.start(task)
}

func (p *process) start(task func(done func())) {
	task(func() {
		p.wake()
		if len(p.tasks) > 0 {
			next := p.tasks[0]
			p.tasks = p.tasks[1:]
			p.start(next)
			return
		}
		p.busy--
	})
}
