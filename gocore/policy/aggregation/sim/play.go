package sim

import "velocpy/gocore/policy/aggregation"

// Result is what a push comes to. Times are in seconds.
type Result struct {
	Bytes   int64   `json:"bytes"`
	Elapsed float64 `json:"elapsed"`
	Copying float64 `json:"copying"` // of that, while bytes are copied: from the first read until everything is on the medium
	Files   int     `json:"files"`
	Plans   int     `json:"plans"`
	Leaders int     `json:"leaders"` // ranks that lead a file

	// Messages with bytes of checkpoints, of the rank that has the most.
	Messages       int64 `json:"messages"` // all of them
	LeaderReceives int64 `json:"leader_receives"`
	SenderSends    int64 `json:"sender_sends"`

	// Messages that bring no bytes of checkpoints.
	Calls          int   `json:"calls"` // that all ranks make together
	LowestReceives int64 `json:"lowest_receives"`

	// Memory of the rank that needs the most, in bytes.
	LeaderBuffers int64 `json:"leader_buffers"` // for what it receives
	LeaderMemory  int64 `json:"leader_memory"`  // with those for what it sends and copies
	PlanText      int64 `json:"plan_text"`      // the longest plan, which every rank has
}

// Rate is the bytes per second of the whole push.
func (r *Result) Rate() float64 { return float64(r.Bytes) / r.Elapsed }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// page is beside the bytes of each buffer.
const page = 4096

// Together plays the push of ranks on several nodes: plans, messages to leaders, and commits.
func Together(c Cluster, s Software, p Push) (Result, error) {
	w, err := prepare(&c, &p)
	if err != nil {
		return Result{}, err
	}
	return w.together(&s, &p), nil
}

// prepare checks what is to be played, and makes the cluster.
func prepare(c *Cluster, p *Push) (*world, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return newWorld(c, p.Nodes), nil
}

func (w *world) together(s *Software, p *Push) Result {
	r := Result{Bytes: p.total(), Files: p.Files}
	talk := &control{w: w, s: s, push: p, files: map[int]bool{}}
	talk.begin()
	processes := make([]*process, len(p.Bytes))
	for rank := range processes {
		processes[rank] = newProcess(w, p, rank)
	}
	leads := map[int]bool{}
	planner := newPlanner(p)
	for planner.left > 0 {
		plan := planner.next(planner.batch(p.Files), p.Nodes)
		r.Plans++
		if w.planned != nil {
			w.planned(plan.copies)
		}
		talk.plan(plan)
		began := w.Now()
		w.carryOut(plan, processes, p.Buffer)
		r.Copying += seconds(w.Now() - began)
		planner.learn(processes)
		talk.land(plan, processes[0].ended)
		for _, x := range plan.leaders {
			leads[x.Rank] = true
		}
	}
	talk.end()
	r.Leaders, r.Elapsed = len(leads), seconds(w.Now())
	r.Calls, r.LowestReceives, r.PlanText = talk.calls, talk.came, talk.text
	r.count(processes, p)
	return r
}

// carryOut lets all ranks carry out a plan; leaders sync what they have written.
func (w *world) carryOut(plan *plan, processes []*process, buffer int64) {
	clear(w.shared)
	led := map[int]int{} // by file: a node that leads it
	for _, x := range plan.leaders {
		node := processes[x.Rank].node.number
		if other, some := led[x.File]; some && other != node {
			w.shared[x.File] = true
		}
		led[x.File] = node
	}
	share(plan, processes, buffer)
	for _, p := range processes {
		p.begin()
	}
	w.drain()
	if len(plan.copies) > 0 {
		w.pass(w.syncDelay)
	}
}

// count adds up what the ranks have done.
func (r *Result) count(processes []*process, p *Push) {
	for _, x := range processes {
		r.Messages += x.receivedCount
		r.LeaderReceives = max(r.LeaderReceives, x.receivedCount)
		r.SenderSends = max(r.SenderSends, x.sentCount)
		in := int64(x.mostIn) * (p.Buffer + page)
		r.LeaderBuffers = max(r.LeaderBuffers, in)
		r.LeaderMemory = max(r.LeaderMemory, in+int64(x.mostOut)*(p.Buffer+page)+int64(x.mostCopying)*aggregation.CopyBytes)
	}
}

// MostMemory is the bytes that one rank needs for what it receives, sends and copies, however many ranks there are.
func (p *Push) MostMemory() int64 {
	return 2*int64(p.Buffers)*(p.Buffer+page) + int64(p.Writers)*aggregation.CopyBytes
}

// Alone plays the push of ranks that are all on one machine: one process copies, and there are no messages.
func Alone(c Cluster, s Software, p Push) (Result, error) {
	w, err := prepare(&c, &p)
	if err != nil {
		return Result{}, err
	}
	return w.alone(&s, &p), nil
}

func (w *world) alone(s *Software, p *Push) Result {
	r := Result{Bytes: p.total(), Files: p.Files, Leaders: 1}
	w.pass(nanoseconds(s.opening(len(p.Bytes), min(p.Writers, w.c.Cores))))
	planner, on := newPlanner(p), w.nodes[p.Nodes[0]]
	for planner.left > 0 {
		plan := planner.next(planner.batch(1), nil)
		r.Plans++
		began := w.Now()
		copiers := 0
		w.workers(p.Writers, len(plan.copies), func(number int, done func()) {
			copiers++
			r.LeaderMemory = max(r.LeaderMemory, int64(copiers)*aggregation.CopyBytes)
			w.copy(on, &plan.copies[number], func(file int, at, bytes int64, done func()) { w.write(on, file, at, bytes, done) }, func() {
				copiers--
				done()
			})
		})
		w.pass(w.syncDelay)
		r.Copying += seconds(w.Now() - began)
		w.pass(nanoseconds(s.CommitPart*float64(plan.keys*len(p.Bytes)) + w.c.SyncDelay))
	}
	r.Elapsed = seconds(w.Now())
	return r
}

// workers does so many jobs, at most so many at once, in their order.
func (w *world) workers(most, jobs int, do func(number int, done func())) {
	next := 0
	var one func()
	one = func() {
		if next < jobs {
			next++
			do(next-1, one)
		}
	}
	for range most {
		one()
	}
	w.drain()
}

// FilePerRank plays ranks that each write a file of their own, in one directory, by so many threads of each, and compare nothing.
func FilePerRank(c Cluster, p Push, threads int) (Result, error) {
	w, err := prepare(&c, &p)
	if err != nil {
		return Result{}, err
	}
	return w.filePerRank(&p, threads), nil
}

func (w *world) filePerRank(p *Push, threads int) Result {
	r := Result{Bytes: p.total(), Files: len(p.Bytes)}
	for rank, n := range p.Bytes {
		on, left, at := w.nodes[p.Nodes[rank]], n*int64(p.Keys), int64(0)
		var next func()
		next = func() {
			bytes, to := min(left, aggregation.CopyBytes), at
			if bytes == 0 {
				return
			}
			at, left = at+bytes, left-bytes
			w.read(on, bytes, func() { w.write(on, rank, to, bytes, next) })
		}
		w.create(func() {
			for range threads {
				next()
			}
		})
	}
	w.drain()
	w.pass(w.syncDelay)
	r.Elapsed = seconds(w.Now())
	r.Copying, r.LeaderMemory = r.Elapsed, int64(threads)*aggregation.CopyBytes
	return r
}
