package sim

// LowerBound is a time (ns) for which the caller of a shot is blocked at least, copying included, whatever the policy and however well it
// foresees the future.
//
// Let s(i) be the size of checkpoint i, S(i) = s(0)+…+s(i), C the bytes that tiers 0 to m hold together, W and R the rates of the link below
// tier m, down and up. Whatever the policy does:
//
//  1. When capture i has ended, S(i) bytes have been captured and nothing has been dropped, so at least S(i)-C of them lie below tier m,
//     be it that they were flushed or that their capture went there at once. When capture k < i ended, no more than S(k) lay there. The
//     rest, S(i)-C-S(k), has crossed the link since. So end(i) >= end(k) + (S(i)-C-S(k))/W.
//  2. Let P(j) be the bytes of the different checkpoints among the first j+1 restores. When restore k ended (or, for k = -1, the last capture),
//     tiers 0 to m held at most C of the P(j)-P(k) bytes that restores k+1 to j ask for first; the rest has crossed the link, or was
//     fetched past the upper tiers over a link further down, before the last of them was copied out. So with R the sum of
//     the rates of the links below tier m, begin(j) >= end(k) + (P(j)-P(k)-C)/R.
//  3. end >= begin + copy, also where a capture crosses a link, and begin >= the end before + what is computed in between.
//
// Checkpoints are counted in the order of the calls, whatever histories they are of.
//
// A checkpoint that is larger than every tier above a link is captured below it: in (1), S counts only those that are not.
//
// All three say that one moment comes so much after another; the earliest moments that satisfy all of them are found in the order of time. The
// caller is blocked whenever it does not compute. Tiers hold whole checkpoints, so of
// their capacity only the multiple of the largest common divisor of all sizes counts. The bound leaves out latencies, fragmentation, and that the two directions share whole checkpoints.
func (m *Machine) LowerBound(s *Shot) int64 {
	return m.captureBound(s) + m.restoreBound(s)
}

// moments follows one link: the latest of end(k) - (bytes before k)/rate, over all k so far.
type moments struct {
	capacity int64
	largest  int64   // checkpoint that there is a tier for above the link
	rate     float64 // bytes per ns
	latest   float64
	some     bool
}

func (x *moments) ended(at float64, before int64) {
	if v := at - float64(before)/x.rate; !x.some || v > x.latest {
		x.latest, x.some = v, true
	}
}

// begin is the earliest moment at which bytes, less what the tiers hold, can have crossed.
func (x *moments) begin(bytes int64) float64 {
	if !x.some || bytes <= x.capacity {
		return 0
	}
	return x.latest + float64(bytes-x.capacity)/x.rate
}

// links prepares the moments of every link of the machine in one direction. Capacities count as far as whole checkpoints can fill them.
func (m *Machine) links(s *Shot, rate func(link int) float64) []moments {
	grain := int64(0)
	for _, track := range s.tracks() {
		for _, n := range track.Sizes {
			for a := n; a > 0; {
				grain, a = a, grain%a
			}
		}
	}
	grain = max(grain, 1)
	var list []moments
	capacity, largest := int64(0), int64(0)
	for k := range m.media {
		capacity, largest = capacity+m.Engine.Capacity(k)/grain*grain, max(largest, m.Engine.Capacity(k))
		list = append(list, moments{capacity: capacity, largest: largest, rate: rate(k) / 1e9})
	}
	return list
}

func (m *Machine) captureBound(s *Shot) int64 {
	links := m.links(s, func(k int) float64 { return m.media[k].WriteRate })
	tracks := s.tracks()
	now, computed, before := 0.0, 0.0, make([]int64, len(links))
	for _, c := range s.captures() {
		n := tracks[c.track].Sizes[c.key]
		computed += float64(c.wait)
		now += float64(c.wait + m.CopyTime(n))
		for k := range links {
			if n <= links[k].largest {
				before[k] += n
				now = max(now, links[k].begin(before[k]))
			}
		}
		for k := range links {
			if n <= links[k].largest {
				links[k].ended(now, before[k])
			}
		}
	}
	return int64(now - computed)
}

func (m *Machine) restoreBound(s *Shot) int64 {
	links := m.links(s, func(k int) (sum float64) {
		for _, x := range m.media[k:] {
			sum += x.ReadRate
		}
		return sum
	})
	for k := range links {
		links[k].ended(0, 0)
	}
	tracks := s.tracks()
	seen := map[call]bool{}
	now, computed, bytes := 0.0, 0.0, int64(0)
	calls, _ := s.restores()
	for _, c := range calls {
		computed += float64(c.wait)
		now += float64(c.wait)
		n := tracks[c.track].Sizes[c.key]
		if of := (call{track: c.track, key: c.key}); !seen[of] {
			seen[of] = true
			bytes += n
		}
		for k := range links {
			now = max(now, links[k].begin(bytes))
		}
		now += float64(m.CopyTime(n))
		for k := range links {
			links[k].ended(now, bytes)
		}
	}
	return int64(now - computed)
}
