package schedule

// state is what the decisions on the first checkpoints leave for the others.
type state struct {
	time     int64 // the application's clock
	link     int64 // when a transfer queued now could begin; at least time
	encoder  int64 // when a call of the encoder queued now could begin; at least time, if it matters at all
	flushes  int32 // newest transfer, in search.chains
	encodes  int32 // newest call of the encoder, likewise; only with Overlap
	members  int32 // checkpoints that are accumulated
	step     int32 // newest decision, in search.steps
	raw      int64 // bytes that are accumulated
	encoded  int64 // … once encoded
	decision Decision
}

// step is a decision of a plan and the one before it.
type step struct {
	before   int32
	decision Decision
}

// admit is the first time, from the given one on, at which the cache has room for so many more bytes; ok is false if it never has.
func (p *search) admit(s *state, from, bytes int64) (at int64, ok bool) {
	room := p.Cache - s.raw - bytes
	if room < 0 {
		return 0, false
	}
	if !p.Overlap {
		return max(from, p.chains.freed(s.flushes, room)), true
	}
	for at = from; ; {
		end, more := p.chains.next(s.encodes, at)
		if x := p.chains.left(s.encodes, at); x <= room {
			if freed := max(at, p.chains.freed(s.flushes, room-x)); !more || freed < end {
				return freed, true
			}
		}
		at = end
	}
}

// whole applies U.
func (p *search) whole(s state, c *Checkpoint) (state, bool) {
	from, d := p.work(s.time, s.encoder, c.Interval), p.transfer(c.Size)
	if c.Size > p.Cache { // past the cache
		s.link = max(s.link, from) + d
		s.time = s.link
	} else {
		s.time, _ = p.admit(&s, from, c.Size)
		s.link = max(s.link, s.time) + d
		s.flushes = p.chains.add(s.flushes, s.link, c.Size)
	}
	return p.decide(s, Whole), true
}

// accumulate applies A. It refuses what no X could ever encode.
func (p *search) accumulate(s state, c *Checkpoint) (state, bool) {
	if p.hold(s.raw+c.Size, s.encoded+c.Encoded) > p.Cache || !p.allows(s.raw+c.Size) {
		return s, false
	}
	from, ok := p.work(s.time, s.encoder, c.Interval), false
	if s.time, ok = p.admit(&s, from, c.Size); !ok {
		return s, false
	}
	s.raw, s.encoded, s.members = s.raw+c.Size, s.encoded+c.Encoded, s.members+1
	return p.decide(s, Accumulate), true
}

// encode applies X, or C where nothing is accumulated.
func (p *search) encode(s state, c *Checkpoint) (state, bool) {
	raw, encoded, decision := s.raw+c.Size, s.encoded+c.Encoded, Bulk
	if s.members == 0 {
		decision = Alone
	} else if !p.allows(raw) {
		return s, false
	}
	held := p.hold(raw, encoded)
	at, ok := p.admit(&s, p.work(s.time, s.encoder, c.Interval), held-s.raw)
	if !ok {
		return s, false
	}
	s.raw, s.encoded, s.members = 0, 0, 0
	s.time = at
	done, remains := max(s.encoder, at)+p.encodeTime(raw), p.remains(held, encoded)
	if p.Overlap {
		s.encoder = done
		s.encodes = p.chains.add(s.encodes, done, held-remains)
	} else {
		s.time = done
	}
	s.link = max(s.link, done) + p.transfer(encoded)
	s.flushes = p.chains.add(s.flushes, s.link, remains)
	return p.decide(s, decision), true
}

// decide ends a transition.
func (p *search) decide(s state, d Decision) state {
	s.link = max(s.link, s.time)
	if p.Overlap {
		s.encoder = max(s.encoder, s.time)
	}
	s.decision = d
	return s
}
