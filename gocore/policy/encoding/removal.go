package encoding

// removals decides for Auto which checkpoints of a device are captured to be de-duplicated there. The room that the host reserves depends on that, so it is decided at the capture; the
// other ways are chosen at the flush. So de-duplication is compared with the best of these.
type removals struct {
	news     news
	captured bool       // the first checkpoint was captured
	begun    [sides]int // checkpoints of the present trial of a side; with all of them it is over
	vain     int        // trials in a row of de-duplication of which no checkpoint has told anything
	since    int        // checkpoints that were captured for the better side since the last trial of the other
	failed   int        // checkpoints in a row that were captured to be de-duplicated, and were not
}

// side is what a checkpoint is captured for.
type side uint8

const (
	others     side = iota // the ways that are chosen at the flush
	duplicates             // de-duplication by its device
	sides
)

// A trial of de-duplication has so many checkpoints. The first is compared with none, or with one of long ago: it does not count. If too much of the second is new, it is the last.
const (
	firstDeduplicated = 2
	mostDeduplicated  = trial + 1
)

// mostSure is the part of new bytes up to which de-duplication goes on before it is known what the other ways cost: they cross the link with more.
const mostSure = 0.125

// mostVain is how often the wait for the next trial doubles while none tells anything.
const mostVain = 6

// mostFailed is how many checkpoints may fail to be de-duplicated, one after the other, and be replaced in the trial. A device that still makes its memory ready fails with a few.
const mostFailed = 8

// next is the side of the checkpoint that is captured now. few: little is new in differences, which are one of the other ways.
func (r *removals) next(c *costs, few bool) side {
	if !r.captured { // it uses the link while kernels look for duplicates in the next one
		r.captured = true
		return others
	}
	if r.begun[duplicates] < r.most() {
		r.begun[duplicates]++
		return duplicates
	}
	if n := r.begun[others]; n > 0 && n < trial {
		r.begun[others]++
		return others
	}
	best := c.bestOther(few)
	better := r.better(c, best)
	if r.since++; !r.due(c, better, best) {
		return better
	}
	worse := sides - 1 - better
	r.since, r.begun[worse] = 0, 1
	if worse == duplicates {
		if r.vain++; c.each[down][Deduplicated].count > 0 {
			r.vain = 0
		}
		c.begin(Deduplicated)
		r.news = news{ignore: true}
	}
	return worse
}

// most is how many checkpoints the trial of de-duplication has, as far as is known.
func (r *removals) most() int {
	if r.news.few() {
		return mostDeduplicated
	}
	return firstDeduplicated
}

// better is the side that costs less, if the best of the other ways is this one. What saves room may cost a little more than plain bytes.
func (r *removals) better(c *costs, best Way) side {
	if !c.knows(Deduplicated) || !r.news.few() {
		return others
	}
	if !c.knows(best) {
		if r.news.part <= mostSure {
			return duplicates
		}
		return others
	}
	var among can
	among[best], among[Deduplicated] = true, true
	most := c.total(best, among)
	if best == Plain {
		most *= little
	}
	if c.total(Deduplicated, among) <= most {
		return duplicates
	}
	return others
}

// due tells whether the side that is not the better one is to be tried again.
func (r *removals) due(c *costs, better side, best Way) bool {
	switch {
	case better == others && c.each[down][Deduplicated].count == 0: // the flushes of the trial have not ended, checkpoints of it are gone, or the device could not de-duplicate
		return r.since >= min(firstWait<<min(r.vain, mostVain), mostWait)
	case better == others:
		return c.due(Deduplicated, best, r.since)
	case !c.knows(best):
		return r.since >= firstWait
	}
	return c.due(best, Deduplicated, r.since)
}

// removed tells which part of a checkpoint that a device has de-duplicated was new, and whether its time says what others will take.
func (r *removals) removed(part float64) (counts bool) {
	r.failed, counts = 0, !r.news.ignore
	r.news.removed(part)
	return counts
}

// notRemoved tells that a checkpoint was captured to be de-duplicated, and was not. Another one takes its place in the trial.
func (r *removals) notRemoved(c *costs) {
	if r.failed++; r.failed < mostFailed && !c.knows(Deduplicated) && r.begun[duplicates] > 0 {
		r.begun[duplicates]--
	}
}
