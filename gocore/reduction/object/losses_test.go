package object

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/regions"
)

// memory is the checkpoints whose plain bytes are in memory, in the order in which they are asked.
type memory struct {
	s     *tier
	have  []uint32
	bad   map[uint32]int // a region of a checkpoint whose bytes are not right; the others are
	asked int            // how often Elsewhere was called
}

// slot returns the plain bytes of a checkpoint, those of a bad region wrong.
func (m *memory) slot(number uint32) []byte {
	_, spans, n := slot(m.s.plain[number])
	p := bytes.Repeat([]byte{0x5a}, int(n))
	for i, r := range m.s.plain[number] {
		to := p[spans[i].Offset:spans[i].End()]
		copy(to, r.Bytes)
		if bad, some := m.bad[number]; some && bad == i {
			for j := range to {
				to[j] ^= 0xff
			}
		}
	}
	return p
}

func (m *memory) elsewhere(l *Losses) {
	m.asked++
	for _, number := range m.have {
		d := m.s.differences[number]
		if !l.Needs(d) {
			continue
		}
		names, spans, _ := slot(m.s.plain[number])
		r, err := Open(d, names, spans, m.s.reading(d))
		if err != nil {
			m.s.t.Fatalf("%v", err)
		}
		asked := map[int]bool{}
		l.Fill(r, m.slot(number), func(region int) bool {
			if asked[region] {
				m.s.t.Fatalf("asked twice about region %d", region)
			}
			asked[region] = true
			bad, some := m.bad[number]
			return !some || bad != region
		})
	}
}

// arrivalsOf counts how often each byte of a slot arrives.
func arrivalsOf(n int64) (count []uint8, arrived func(at, n int64)) {
	var lock sync.Mutex
	count = make([]uint8, n)
	return count, func(at, n int64) {
		lock.Lock()
		defer lock.Unlock()
		for i := range count[at : at+n] {
			count[at+int64(i)]++
		}
	}
}

// restoreWith decodes a checkpoint, or what is wanted of it, with the help of others in memory. Bytes that come back without an error must be right, and each must
// have arrived once.
func (s *tier) restoreWith(number uint32, m *memory, wanted []model.Span) error {
	s.t.Helper()
	r, spans, n := s.open(number)
	r.Elsewhere, r.Unreadable = m.elsewhere, func(err error) bool { return err == errUnreadable }
	if wanted == nil {
		wanted = spans
	}
	got := make([]byte, n)
	count, arrived := arrivalsOf(n)
	err := r.Decode(wanted, got, arrived, regions.Options{Goroutines: s.copies, Room: s.room})
	if m.asked > 1 {
		s.t.Fatalf("asked %d times", m.asked)
	}
	if err != nil {
		return err
	}
	want, once := make([]byte, n), make([]uint8, n)
	copy(want, (&memory{s: s}).slot(number))
	for _, w := range wanted {
		if !bytes.Equal(got[w.Offset:w.End()], want[w.Offset:w.End()]) {
			s.t.Fatalf("checkpoint %d: wrong bytes", number)
		}
		for i := range once[w.Offset:w.End()] {
			once[w.Offset+int64(i)] = 1
		}
	}
	if !bytes.Equal(count, once) {
		s.t.Fatalf("checkpoint %d: not each wanted byte arrived once", number)
	}
	return nil
}

// firsts marks first occurrences, by the number of their object.
type firsts map[uint32][]bool

func (f firsts) mark(number uint32, at uint64) {
	if n := at + 1; n > uint64(len(f[number])) {
		f[number] = append(f[number], make([]bool, n-uint64(len(f[number])))...)
	}
	f[number][at] = true
}

func (f firsts) has(number uint32, at int) bool { return at < len(f[number]) && f[number][at] }

// markFirsts marks the first occurrences that a checkpoint needs in some spans of its slot, or has there; not those of one region.
func (s *tier) markFirsts(number uint32, wanted []model.Span, without int, to firsts) {
	r, spans, _ := s.open(number)
	for i := range r.Map().Regions {
		if i == without {
			continue
		}
		for _, w := range wanted {
			from, end := max(w.Offset, spans[i].Offset)-spans[i].Offset, min(w.End(), spans[i].End())-spans[i].Offset
			r.Map().Regions[i].Each(uint64(max(from, 0)), uint64(max(end, 0)), func(run difference.Run, n uint64) bool {
				for at := range n {
					if run.Period > 0 {
						at %= uint64(run.Period)
					}
					to.mark(run.Checkpoint, run.Offset+at)
				}
				return true
			})
		}
	}
}

// flip flips a bit of a chunk's payload, so that it is damaged. It returns the first occurrences that are lost with it; none if the chunk is damaged already.
func (s *tier) flip(number uint32, container, chunk int) (from, end uint64) {
	s.t.Helper()
	r, _, _ := s.open(number)
	in := r.places[len(r.places)-1]
	plain := in.plain(container)
	encoded := s.objects[number][in.at[container]:in.at[container+1]]
	c, err := codec.Open(encoded, int(plain))
	if err != nil {
		s.t.Fatalf("%v", err)
	}
	var needed chunkSet
	needed.add(chunk, chunk+1)
	needed.complete(c)
	sound := func() bool { return needed.decode(c, make([]byte, plain), nil, new(chunkSet)) == nil }
	if !sound() {
		return 0, 0
	}
	at, bit := c.Payload(chunk), s.random.IntN(8)
	for tries := 0; ; tries++ { // some bits of a payload mean nothing
		if encoded[at] ^= 1 << bit; !sound() {
			break
		}
		encoded[at] ^= 1 << bit
		if bit = (bit + 1) % 8; tries == 8 {
			s.t.Fatalf("no bit of byte %d of a container matters", at)
		}
	}
	offset := uint64(in.offset(container))
	if c.Together() > 1 {
		return offset, offset + uint64(plain)
	}
	return offset + uint64(chunk)*codec.ChunkBytes, offset + uint64(min(int64(chunk+1)*codec.ChunkBytes, plain))
}

// The checkpoint that wrote an object has all bytes of it, wherever the object is damaged. Without any in memory the damage is reported as it was.
func TestTheWriterHasWhatIsLost(t *testing.T) {
	for _, method := range methods {
		s := smallTier(t, method)
		defer s.close()
		found, failed := 0, 0
		for damaged, object := range s.objects {
			data := s.differences[damaged].Data
			whole := bytes.Clone(object)
			for i := range data / 16 {
				object[16*i+7] ^= 0x10
			}
			for number := range s.plain {
				alone, all := &memory{s: s}, &memory{s: s, have: []uint32{damaged}}
				err := s.restoreWith(number, alone, nil)
				if (err != nil) != (alone.asked == 1) {
					t.Fatalf("%v: asked %d times, and %v", method, alone.asked, err)
				}
				if err == nil {
					continue
				}
				source := slices.IndexFunc(s.differences[number].Sources, func(x model.Source) bool { return x.Number == damaged })
				if d := kind(t, err); d.Source != source || d.Region < 0 || (source < 0) != (damaged == number) {
					t.Fatalf("%v: object %d is damaged, and checkpoint %d has %+v", method, damaged, number, d)
				}
				failed++
				if damaged == number {
					continue // what is to be restored is not in memory
				}
				if err := s.restoreWith(number, all, nil); err != nil {
					t.Fatalf("%v: object %d is damaged, and its checkpoint is there: checkpoint %d: %v", method, damaged, number, err)
				}
				found++
			}
			copy(object, whole)
		}
		if failed < 5 || method != difference.Full && found < 3 {
			t.Errorf("%v: %d restores failed without memory, and %d succeeded with it", method, failed, found)
		}
		t.Logf("%v: %d restores failed without memory, and %d succeeded with it", method, failed, found)
	}
}

// Whichever chunks of a lineage are damaged, and whichever checkpoints are in memory, some with wrong bytes: a restore has the right bytes if all that are damaged
// are in a region that is right, and else an error.
func TestLossesOfHistories(t *testing.T) {
	ends := map[string]int{}
	each := func() bool {
		return ends["found"] > 0 && ends["lost"] > 0 && ends["unreadable"] > 0 && ends["unhurt"] > 0
	}
	for range 5 { // short runs are of few restores, which may leave one out
		rapid.Check(t, func(t *rapid.T) { testLosses(t, ends) })
		if each() {
			break
		}
	}
	if t.Logf("restores: %v", ends); !each() {
		t.Errorf("not each end occurs: %v", ends)
	}
}

func testLosses(t *rapid.T, ends map[string]int) {
	o := Options{
		Method:  rapid.SampledFrom(methods[1:]).Draw(t, "method"),
		Chunk:   1 << rapid.IntRange(5, 12).Draw(t, "log2 chunk"),
		Kind:    digest.XXH3,
		Lineage: rapid.Uint64().Draw(t, "lineage"),
		Record:  1 << 20,
	}
	s := newTier(t, o)
	defer s.close()
	var now []dedup.Region
	for range rapid.IntRange(2, 8).Draw(t, "checkpoints") {
		now = change(t, now, s.random, o.Chunk)
		s.add(now)
	}
	lost := firsts{}
	s.unreadable = map[uint32][]model.Span{}
	numbers := slices.Sorted(maps.Keys(s.objects))
	for range rapid.IntRange(1, 6).Draw(t, "flips") {
		n, offset, some := s.someFirst(numbers[s.random.IntN(len(numbers))])
		if !some {
			continue
		}
		r, _, _ := s.open(n)
		in := r.places[len(r.places)-1]
		container, from, _ := in.find(int64(offset))
		begin, end := s.flip(n, container, int(from/codec.ChunkBytes))
		if s.random.IntN(2) == 0 { // no byte of the container can be read
			lies := model.Span{Offset: in.at[container], Bytes: in.at[container+1] - in.at[container]}
			s.unreadable[n] = append(s.unreadable[n], lies)
			begin, end = uint64(in.offset(container)), uint64(in.offset(container)+in.plain(container))
		}
		for at := begin; at < end; at++ {
			lost.mark(n, at)
		}
	}
	s.judge(numbers, lost, ends)
}

// someFirst returns where a random byte of a checkpoint lies; false if it has none.
func (s *tier) someFirst(number uint32) (object uint32, offset uint64, some bool) {
	r, spans, _ := s.open(number)
	for range 10 {
		if len(spans) == 0 {
			return 0, 0, false
		}
		i := s.random.IntN(len(spans))
		if spans[i].Bytes == 0 {
			continue
		}
		at := s.random.Uint64N(uint64(spans[i].Bytes))
		r.Map().Regions[i].Each(at, at+1, func(run difference.Run, _ uint64) bool {
			object, offset = run.Checkpoint, run.Offset
			return false
		})
		return object, offset, true
	}
	return 0, 0, false
}

// judge restores checkpoints, with random others in memory, and compares how that ends with what is lost.
func (s *tier) judge(numbers []uint32, lost firsts, ends map[string]int) {
	for range 4 {
		number := numbers[s.random.IntN(len(numbers))]
		m := &memory{s: s, bad: map[uint32]int{}}
		held := firsts{}
		for _, n := range numbers {
			if n == number || s.random.IntN(2) == 0 {
				continue
			}
			m.have = append(m.have, n)
			without := -1
			if s.random.IntN(3) == 0 && len(s.plain[n]) > 0 {
				without = s.random.IntN(len(s.plain[n]))
				m.bad[n] = without
			}
			_, spans, _ := slot(s.plain[n])
			s.markFirsts(n, spans, without, held)
		}
		s.random.Shuffle(len(m.have), func(i, j int) { m.have[i], m.have[j] = m.have[j], m.have[i] })
		_, spans, _ := slot(s.plain[number])
		wanted := parts(s, spans)
		needed := firsts{}
		s.markFirsts(number, wanted, -1, needed)
		hurt, missing := false, false
		for n, list := range lost {
			for at, is := range list {
				if is && needed.has(n, at) {
					hurt, missing = true, missing || !held.has(n, at)
				}
			}
		}
		err := s.restoreWith(number, m, wanted)
		switch end := fmt.Sprint(hurt, missing); {
		case !hurt && m.asked == 0 && err == nil:
			ends["unhurt"]++
		case missing && err == errUnreadable:
			ends["unreadable"]++
		case missing && err != nil:
			kind(s.t, err)
			ends["lost"]++
		case !missing && err == nil:
			ends["found"]++ // or a byte of the same chunk is lost that nobody wants
		default:
			s.t.Fatalf("checkpoint %d: hurt and missing are %s, and the restore ends with %v after %d questions", number, end, err, m.asked)
		}
	}
}

// parts returns the spans, or parts of them.
func parts(s *tier, spans []model.Span) (all []model.Span) {
	if s.random.IntN(2) == 0 {
		return slices.Clone(spans)
	}
	all = []model.Span{}
	for _, span := range spans {
		from := s.random.Int64N(span.Bytes + 1)
		if n := s.random.Int64N(span.Bytes - from + 1); n > 0 {
			all = append(all, model.Span{Offset: span.Offset + from, Bytes: n})
		}
	}
	return all
}
