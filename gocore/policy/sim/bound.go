package sim

// LowerBound is the least time (ns) for which the caller of a shot is blocked, including copying, under any policy, even one that knows the future.
//
// Let s(i) be the size of checkpoint i, S(i) = s(0)+…+s(i), C the bytes that tiers 0 to m hold together, W and R the rates of the link below tier m,
// down and up. Under any policy:
//
//  1. When capture i has ended, S(i) bytes have been captured and none dropped, so at least S(i)-C of them are below tier m. They were
//     flushed, or their capture went there at once. When capture k < i ended, at most S(k) bytes were there. The rest, S(i)-C-S(k), has
//     crossed the link since. So end(i) >= end(k) + (S(i)-C-S(k))/W.
//  2. Let P(j) be the bytes of the different checkpoints among the first j+1 restores. When restore k ended (or, for k = -1, the last capture),
//     tiers 0 to m held at most C of the P(j)-P(k) bytes that restores k+1 to j ask for first. Before the last of them was copied out, the
//     rest has crossed the link, or was fetched past the upper tiers over a link further down. So with R the sum of the rates of the links
//     below tier m, begin(j) >= end(k) + (P(j)-P(k)-C)/R.
//  3. end >= begin + copy, also where a capture crosses a link, and begin >= the previous end + the computation in between.
//
// Checkpoints are counted in the order of the calls, regardless of their histories.
//
// A checkpoint larger than every tier above a link is captured below it: in (1), S counts only the others.
//
// All three state that one moment follows another by at least so much. The earliest moments that satisfy all of them are found in the order of time.
// The caller is blocked whenever it does not compute. Tiers hold whole checkpoints, so only the multiple of the greatest common divisor of all sizes
// counts of their capacity. The bound leaves out latencies, fragmentation, and that the two directions share whole checkpoints.
func (m *Machine) LowerBound(s *Shot) int64 {
	return m.captureBound(s) + m.restoreBound(s)
}

// moments describes one link: the latest of end(k) - (bytes before k)/rate, over all k so far.
type moments struct {
	capacity int64
	largest  int64   // the largest checkpoint that fits a tier above the link
	rate     float64 // bytes per ns
	latest   float64
	some     bool
}

func (x *moments) ended(at float64, before int64) {
	if v := at - float64(before)/x.rate; !x.some || v > x.latest {
		x.latest, x.some = v, true
	}
}

// begin is the earliest moment at which that many bytes, less the capacity of the tiers, can have crossed.
func (x *moments) begin(bytes int64) float64 {
	if !x.some || bytes <= x.capacity {
		return 0
	}
	return x.latest + float64(bytes-x.capacity)/x.rate
}

// links prepares the moments of every link of the machine in one direction. Capacities count only as far as whole checkpoints can fill them.
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
