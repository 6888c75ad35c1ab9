package journal

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// scan iterates over the frames of a file.
type scan struct {
	*source
	offset int64
	at     place
	hashed int64 // bytes hashed by resync
}

// next returns the frame at the current offset, if it is complete, and advances behind it. The payload is valid until the next read of the file.
func (s *scan) next() (h head, payload []byte, ok bool, err error) {
	h, ok, err = s.peek(readAhead)
	if !ok || err != nil {
		return h, nil, false, err
	}
	p, err := s.bytes(s.offset, int(frameBytes(h.length)), readAhead)
	if err != nil {
		return h, nil, false, err
	}
	payload = p[headBytes : headBytes+h.length]
	var rest [grain]byte
	copy(rest[:], p[headBytes+h.length:])
	//mutation:payload-hash-ignored
	if xxh3.Hash(payload) != h.payload || rest != [grain]byte{} {
		return h, nil, false, nil
	}
	s.offset += frameBytes(h.length)
	return h, payload, true, nil
}

// peek parses the head at the current offset. ahead is the size of the read-ahead.
func (s *scan) peek(ahead int) (h head, ok bool, err error) {
	if s.size-s.offset < headBytes {
		return h, false, nil
	}
	p, err := s.bytes(s.offset, headBytes, ahead)
	if err != nil {
		return h, false, err
	}
	s.at.offset = s.offset
	h, ok = parseHead(p, s.at)
	return h, ok && frameBytes(h.length) <= s.size-s.offset, nil
}

// verdict is what the frames after the first one reveal about a file.
type verdict struct {
	found bool  // it counts: its snapshot is complete, or a batch in it was acknowledged
	parts bool  // it has parts of a snapshot
	begin begin // content of the first frame, read or inferred
	end   int64 // end of the snapshot's parts; 0: unknown
}

// verdict reads up to the first frame that decides whether the file counts; it does not verify the payloads of others.
func (s *scan) verdict() (v verdict, err error) {
	for {
		h, ok, err := s.peek(leastRead)
		if err != nil {
			return v, err
		}
		if !ok {
			if h, ok, err = s.resync(func(head) bool { return true }); !ok || err != nil {
				return v, err
			}
		}
		switch h.kind {
		case kindSnapshot:
			v.parts, v.begin = true, begin{behind: h.sequence, snapshot: true}
		case kindComplete:
			v.found, v.begin = true, begin{behind: h.sequence, snapshot: true}
			v.end, err = s.partsEnd()
			return v, err
		case kindBatch, kindClosed:
			if v.found = true; !v.parts {
				v.begin.behind = h.sequence
				if h.kind == kindBatch {
					v.begin.behind--
				}
			}
			return v, nil
		}
		s.offset += frameBytes(h.length)
	}
}

// partsEnd returns the end of the parts by the complete frame at the current offset.
func (s *scan) partsEnd() (int64, error) {
	at := s.offset
	_, payload, ok, err := s.next()
	if !ok || err != nil {
		return 0, err
	}
	if end, ok := parseComplete(payload); ok {
		return end, nil
	}
	return at, nil // the frame follows the parts
}

// resumed tells whether the file has its first batch, but its first frame was never written: see Log.resume.
func (s *scan) resumed() (b begin, counts bool, err error) {
	if zero, err := s.zero(0, completeAt); err != nil || !zero {
		return b, false, err
	}
	behind := *s
	behind.offset = completeAt
	h, _, ok, err := behind.next()
	return begin{behind: h.sequence - 1}, ok && h.kind == kindBatch, err
}

// unwritten skips a complete frame that was never written: the writer died when it had written the other one.
func (s *scan) unwritten(file *opened, at int64) (skipped bool, err error) {
	if !file.begin.snapshot || at != completeAt && (file.end == 0 || at != file.end) {
		return false, nil
	}
	zero, err := s.zero(at, completeBytes)
	if !zero || err != nil || s.failure(at, at+completeBytes) != nil {
		return false, err
	}
	s.offset = min(at+completeBytes, s.size)
	return true, nil
}

// zero tells whether bytes are zero.
func (s *scan) zero(at int64, n int) (bool, error) {
	p, err := s.bytes(at, n, leastRead)
	for _, b := range p {
		if b != 0 {
			return false, err
		}
	}
	return true, err
}

// resync advances to the next wanted frame, or to the end.
func (s *scan) resync(wanted func(h head) bool) (head, bool, error) {
	for at := s.offset + grain; s.size-at >= headBytes; {
		if _, err := s.bytes(at, headBytes, readAhead); err != nil {
			return head{}, false, err
		}
		skipped, found := nextMagic(s.rest(at))
		at += int64(skipped)
		if !found {
			continue
		}
		if h, ok, err := s.try(at, wanted); ok || err != nil {
			return h, ok, err
		}
		at += grain
	}
	s.offset = s.size
	return head{}, false, nil
}

// nextMagic returns the offset in p of the next possible frame; without one, the number of bytes that were searched.
func nextMagic(p []byte) (skipped int, found bool) {
	i := 0
	for ; i+4 <= len(p); i += grain {
		if binary.LittleEndian.Uint32(p[i:]) == frameMagic {
			return i, true
		}
	}
	return i, false
}

// try stops at an offset if a complete wanted frame is there. The limit on hashed bytes keeps forged heads from making it hash more than twice the file.
func (s *scan) try(offset int64, wanted func(h head) bool) (head, bool, error) {
	s.offset = offset
	h, ok, err := s.peek(readAhead)
	if !ok || err != nil || !wanted(h) || s.hashed > 2*s.size {
		return h, false, err
	}
	s.hashed += int64(h.length)
	_, _, whole, err := s.next()
	s.offset = offset
	return h, whole, err
}
