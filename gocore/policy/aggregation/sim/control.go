package sim

import (
	"math/bits"

	"velocpy/gocore/policy/aggregation"
)

// Of velocpy/archive/exchange.py: ns between two looks at whether the other ranks have come. Of together.py: bytes of one message with metadata, and of those that the
// lowest rank waits for at once; and from how many ranks.
const (
	shortestWait, longestWait = 200_000, 20_000_000
	metadataPiece             = 16 << 20
	metadataSenders           = 64
)

// Bytes of what ranks tell each other, in JSON. The test of package archive compares those of a plan with a real one.
const (
	storeText  = 85  // of a plan, for each rank
	fileText   = 26  // for each leader of a file
	partText   = 118 // for each part
	copyText   = 92  // for each copy
	joinText   = 300 // of a rank that takes part
	reportText = 60  // of a rank that has carried out its share
	answerText = 60  // of the lowest rank
)

// PlanText is the bytes of a plan as the ranks get it.
func PlanText(ranks, leaders, parts, copies int) int64 {
	return int64(ranks)*storeText + int64(leaders)*fileText + int64(parts)*partText + int64(copies)*copyText
}

// control is what ranks agree about before, between and behind copies, as in velocpy/archive/together.py: every rank waits for the others.
type control struct {
	w     *world
	s     *Software
	push  *Push
	calls int   // that all ranks make together
	came  int64 // messages with metadata that the lowest rank has received
	text  int64 // bytes of the longest plan
	files map[int]bool
}

// rounds is how many messages lie one behind the other until all ranks know what all have said.
func (t *control) rounds() int64 { return int64(bits.Len(uint(len(t.push.Bytes) - 1))) }

// call lets a call of all ranks pass that brings so many bytes to each, and the time until they notice it.
func (t *control) call(bytes int64) {
	if len(t.push.Bytes) > 1 {
		took := t.rounds()*t.w.linkDelay + int64(float64(bytes)/t.w.c.LinkRate*1e9)
		t.calls++
		t.w.pass(nextLook(0, took, shortestWait, longestWait))
	}
}

// gathered lets all ranks tell each other so many bytes: lengths first, and then the texts.
func (t *control) gathered(bytes int64) {
	t.call(8 * int64(len(t.push.Bytes)))
	t.call(bytes * int64(len(t.push.Bytes)))
}

// decided lets the lowest rank do something, which takes so many seconds, and tell the others so many bytes.
func (t *control) decided(seconds float64, bytes int64) {
	t.w.pass(nanoseconds(seconds))
	t.call(8)
	t.call(bytes)
}

// begin lets the ranks agree, and the lowest one get the catalogs of all stores and open them.
func (t *control) begin() {
	t.gathered(joinText)
	t.gathered(answerText) // whose stores can be read where
	t.w.pass(nanoseconds(t.s.ReadCatalog))
	for range 2 { // the lengths of the catalogs; room for them
		t.gathered(answerText)
	}
	t.collect()
	t.gathered(answerText)
	t.decided(t.opening(), answerText)
	for range 2 { // shares are opened; buffers and threads are made
		t.gathered(answerText)
	}
}

// collect lets the lowest rank receive the catalogs of stores on other nodes, those of some ranks at once. It notices that they have come when it looks.
func (t *control) collect() {
	began, senders, bytes := t.w.Now(), 0, int64(0)
	batch := func() {
		t.w.drain()
		if senders > 0 {
			t.w.pass(nextLook(began, t.w.Now(), shortestWait, longestWait) - t.w.Now())
		}
		began, senders, bytes = t.w.Now(), 0, 0
	}
	for rank := range t.push.Bytes {
		if t.push.Nodes[rank] == t.push.Nodes[0] {
			continue
		}
		if senders == metadataSenders || bytes+t.s.CatalogBytes > metadataPiece {
			batch()
		}
		senders, bytes = senders+1, bytes+t.s.CatalogBytes
		for left := t.s.CatalogBytes; left > 0; left -= metadataPiece {
			t.came++
			t.w.send(t.w.nodes[t.push.Nodes[rank]], t.w.nodes[t.push.Nodes[0]], min(left, metadataPiece), func() {})
		}
	}
	batch()
}

// opening is the seconds in which the lowest rank opens the stores, by as many goroutines as it has writers, and lists their keys.
func (t *control) opening() float64 {
	ofNode := 0
	for _, node := range t.push.Nodes {
		if node == t.push.Nodes[0] || t.w.c.OneMachine {
			ofNode++
		}
	}
	return t.s.opening(len(t.push.Bytes), min(t.push.Writers, max(t.w.c.Cores/ofNode, 1)))
}

// plan lets the lowest rank plan and make files, and tell the plan to all. A file takes a sync, and the directory one.
func (t *control) plan(plan *plan) {
	parts := plan.keys * len(t.push.Bytes)
	files := 0
	for _, x := range plan.leaders {
		if !t.files[x.File] {
			t.files[x.File] = true
			files++
		}
	}
	t.w.workers(aggregation.FilesAtOnce, files, func(_ int, done func()) {
		t.w.create(func() { t.w.after(t.w.syncDelay, done) })
	})
	if files > 0 {
		t.w.pass(t.w.syncDelay)
	}
	t.decided(t.s.PlanPart*float64(parts)+t.s.PlanCopy*float64(len(plan.copies)), answerText)
	text := PlanText(len(t.push.Bytes), len(plan.leaders), parts, len(plan.copies))
	t.text = max(t.text, text)
	t.call(8)
	t.call(text)
	t.w.pass(nanoseconds(t.s.ParseCopy * float64(len(plan.copies))))
}

// land lets the ranks report, and the lowest one commit. waits is since when it has waited for the others, ns.
func (t *control) land(plan *plan, waits int64) {
	t.w.pass(nextLook(waits, t.w.Now(), shortestWait, longestWait) - t.w.Now())
	t.gathered(reportText)
	t.decided(t.s.CommitPart*float64(plan.keys*len(t.push.Bytes))+t.w.c.SyncDelay, answerText)
}

// end lets the lowest rank tell that nothing is left, and the ranks close what they have opened.
func (t *control) end() {
	t.decided(0, answerText)
	t.decided(0, answerText)
	t.gathered(answerText)
	t.decided(0, answerText)
}
