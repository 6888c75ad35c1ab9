package devicetest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"velocpy/gocore/device"
	"velocpy/gocore/device/lineage"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/record"
)

// Machine is the part of a device that a history of de-duplicated checkpoints needs.
type Machine interface {
	Lane() device.Lane
	Wait() // until all work of the lane has run
	Write(at device.Address, p []byte)
	Read(at device.Address, n int64) []byte
	Base() device.Address // HistoryBytes of device memory
}

// HistoryBytes is how much device memory a History uses.
const HistoryBytes = 14 << 20

// Draw makes the choices of a History: a number from 0 up to n.
type Draw func(n int) int

// T is the part of testing.T and rapid.T that a History needs.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// history is a lineage on a device, and the same one by package dedup.
type history struct {
	T
	m       Machine
	draw    Draw
	options lineage.Options
	there   *lineage.Lineage
	here    *dedup.Lineage
	number  uint32

	regions []named
	names   int
	image   []byte // of the memory that was given out
	kept    int64  // of it, for as long as the lineage lives
	guards  []guard
	turn    int
}

// named is a region of the next checkpoint.
type named struct {
	name string
	data []byte
}

// guard is memory that no work may write: from an offset up to another.
type guard struct{ from, to int64 }

const guardBytes = 64

// Shape restricts what a History draws.
type Shape struct {
	Method      difference.Method
	Chunk       int // 0: any
	Checkpoints int
	Regions     int  // the first ones; 0: any number
	Large       bool // regions of many parts of a list, and of several levels with launches of their own
}

// History de-duplicates checkpoints of drawn regions on a device, and compares each difference and map with those of package dedup.
func History(t T, m Machine, draw Draw, shape Shape) {
	t.Helper()
	h := &history{T: t, m: m, draw: draw}
	h.begin(shape)
	for range shape.Checkpoints {
		h.number += 1 + uint32(draw(3)/2)
		h.checkpoint()
		h.between()
		h.change(shape)
	}
}

// begin draws the options and the first regions, and makes both lineages.
func (h *history) begin(shape Shape) {
	h.Helper()
	chunk := shape.Chunk
	if chunk == 0 {
		chunk = 32 << h.draw(8)
	}
	h.options = lineage.Options{
		Method: shape.Method, Chunk: chunk, Seed: uint64(h.draw(math.MaxInt32))*0x9e3779b97f4a7c15 + 5, Blocks: h.draw(2) == 0, MaxAge: uint32(h.draw(4)),
		Entries: []int{0, 1 + h.draw(60), 1 + h.draw(400), 20_000}[h.draw(4)],
	}
	if h.draw(3) == 0 {
		h.options.MaxReferences = 1 + h.draw(3)
	}
	h.restart()
	if h.options.Method != difference.Basic {
		_, h.options.Entries = h.here.Recorded()
	}
	at := h.room(h.options.RecordBytes(), 0)
	h.m.Write(h.base(), h.image)
	h.kept = int64(len(h.image))
	var err error
	if h.there, err = lineage.New(h.options, at); err != nil {
		h.Fatalf("%v", err)
	}
	count := 1 + h.draw(5)
	if !shape.Large && h.draw(8) == 0 {
		count = 60 + h.draw(80) // more than one launch
	}
	if shape.Regions > 0 {
		count = shape.Regions
	}
	for range count {
		h.appear(shape)
	}
}

// restart makes the lineage of package dedup anew.
func (h *history) restart() {
	h.Helper()
	o := h.options
	here, err := dedup.New(dedup.Options{
		Method: o.Method, Chunk: o.Chunk, Seed: o.Seed, Record: record.Memory(o.Entries), MaxAge: o.MaxAge, MaxReferences: o.MaxReferences, Blocks: o.Blocks,
	})
	if err != nil {
		h.Fatalf("%v", err)
	}
	h.here = here
}

// room gives out device memory of arbitrary content, skew bytes behind a multiple of 64. Behind it are bytes that no work may write.
func (h *history) room(bytes, skew int64) device.Address {
	h.Helper()
	at := int64(len(h.image)) + skew
	end := (at + bytes + 63 + guardBytes) &^ 63
	if end > HistoryBytes-2*digestsBytes {
		h.Fatalf("a history of %d B", end)
	}
	h.image = append(h.image, h.random(int(end)-len(h.image))...)
	h.guards = append(h.guards, guard{at - skew, at}, guard{at + bytes, end})
	return h.base() + device.Address(at)
}

// base is where the image lies: behind the memory of digests.
func (h *history) base() device.Address { return h.m.Base() + 2*digestsBytes }

// fixed gives out memory with a content that no work may write.
func (h *history) fixed(content []byte, skew int64) device.Address {
	h.Helper()
	at := h.room(int64(len(content)), skew)
	from := int64(at - h.base())
	copy(h.image[from:], content)
	h.guards = append(h.guards, guard{from, from + int64(len(content))})
	return at
}

// release takes back what was given out behind a length of the image.
func (h *history) release(length int64) {
	h.image = h.image[:length]
	h.guards = slices.DeleteFunc(h.guards, func(g guard) bool { return g.from >= length })
}

// random returns bytes that depend on one draw.
func (h *history) random(n int) []byte {
	p, x := make([]byte, n+8), uint64(h.draw(math.MaxInt32))+1
	for i := 0; i < n; i += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(p[i:], x*0x9e3779b97f4a7c15)
	}
	return p[:n]
}

// size draws the length of a region.
func (h *history) size(shape Shape) int {
	if shape.Large {
		return h.options.Chunk * (5000 + h.draw(3000))
	}
	if len(h.regions) > 8 {
		return 1 + h.draw(300)
	}
	switch h.draw(5) {
	case 0:
		return h.draw(600)
	case 1:
		return h.draw(40_000)
	case 2:
		return 1024 * h.draw(40)
	case 3:
		return h.options.Chunk * (1 + h.draw(16))
	}
	return 1 + h.draw(64*min(h.options.Chunk, 256))
}

// appear adds a region: of noise, of few values, or all of one chunk.
func (h *history) appear(shape Shape) {
	data := h.random(h.size(shape))
	switch h.draw(4) {
	case 0: // not a number, with several payloads
		for i := 0; i+4 <= len(data); i += 4 {
			copy(data[i:], []byte{byte(i / 4096), 0, 0xc0 | data[i]&1, 0x7f})
		}
	case 1:
		for i := h.options.Chunk; i < len(data); i++ {
			data[i] = data[i%h.options.Chunk]
		}
	}
	h.regions = append(h.regions, named{fmt.Sprint("r", h.names), data})
	h.names++
}

// change makes the next versions of the regions.
func (h *history) change(shape Shape) {
	for i := range h.regions {
		r := &h.regions[i]
		r.data = bytes.Clone(r.data)
		if h.draw(4) == 0 {
			n := h.size(shape)
			r.data = append(r.data[:min(n, len(r.data))], h.random(max(0, n-len(r.data)))...)
		}
		h.edit(r.data)
	}
	for range h.draw(4) {
		h.repeat()
	}
	switch h.draw(6) {
	case 0:
		h.appear(shape)
	case 1:
		if len(h.regions) > 1 {
			i := h.draw(len(h.regions))
			h.regions = slices.Delete(h.regions, i, i+1)
		}
	case 2:
		slices.Reverse(h.regions)
	}
}

func (h *history) edit(data []byte) {
	if len(data) == 0 {
		return
	}
	switch h.draw(6) {
	case 0: // single bits
		for range 1 + h.draw(3) {
			data[h.draw(len(data))] ^= 1 << h.draw(8)
		}
	case 1: // the last byte
		data[len(data)-1]++
	case 2: // a range
		from := h.draw(len(data))
		copy(data[from:], h.random(h.draw(len(data)-from+1)))
	case 3: // all
		copy(data, h.random(len(data)))
	case 4: // a step of all elements
		for i := 0; i < len(data); i += 8 {
			data[i]++
		}
	}
}

// repeat copies chunks to another place, some of them as whole subtrees.
func (h *history) repeat() {
	from, to := h.regions[h.draw(len(h.regions))].data, h.regions[h.draw(len(h.regions))].data
	n := h.options.Chunk << h.draw(6)
	if len(from) < n || len(to) < n {
		return
	}
	at, into := h.draw(len(from)/n)*n, h.draw(len(to)/n)*n
	copy(to[into:into+n], bytes.Clone(from[at:at+n]))
}

// between forgets checkpoints, or gives the lineage up.
func (h *history) between() {
	h.Helper()
	switch h.draw(8) {
	case 0, 1:
		n := 1 + uint32(h.draw(int(h.number)))
		h.here.Forget(n)
		if err := h.there.Forget(n); err != nil {
			h.Fatalf("%v", err)
		}
	case 2:
		h.restart()
		if err := h.there.Rebase(); err != nil {
			h.Fatalf("%v", err)
		}
	case 3:
		h.fail()
	}
}

// fail begins a checkpoint that is given up. The lineage takes no other one before it is rebased.
func (h *history) fail() {
	h.Helper()
	h.number++
	k, list, m := h.queue()
	h.m.Wait()
	k.Drop()
	h.verify()
	if _, err := h.there.Dedup(h.m.Lane(), h.number+1, list, m); !errors.Is(err, lineage.ErrChanged) || !h.there.Changed() {
		h.Fatalf("after a checkpoint that was given up: %v", err)
	}
	h.restart()
	if err := h.there.Rebase(); err != nil {
		h.Fatalf("%v", err)
	}
	h.release(h.kept)
}

// queue lays a checkpoint out in device memory and queues its de-duplication.
func (h *history) queue() (*lineage.Checkpoint, []lineage.Region, lineage.Memory) {
	h.Helper()
	var list []lineage.Region
	for i, r := range h.regions {
		list = append(list, lineage.Region{Name: r.name, At: h.fixed(r.data, int64(16*(i%4))), Bytes: int64(len(r.data))})
	}
	need, err := h.there.Need(h.number, list)
	if err != nil {
		h.Fatalf("%v", err)
	}
	m := lineage.Memory{Scratch: h.room(need.Scratch, 16), Result: h.room(need.Result, 48)}
	h.m.Write(h.base()+device.Address(h.kept), h.image[h.kept:])
	if need.Digests > 0 {
		h.turn = 1 - h.turn
		m.Digests = h.digestRoom(need.Digests)
	}
	m.Apart = h.number%2 == 0
	k, err := h.there.Dedup(h.m.Lane(), h.number, list, m)
	if err == nil && m.Apart {
		err = k.Gather(h.m.Lane())
	}
	if err != nil {
		h.Fatalf("checkpoint %d: %v", h.number, err)
	}
	return k, list, m
}

// digestsBytes is the memory of digests, of which there are two: those of the checkpoint before are read while other ones are written.
const digestsBytes = 1 << 20

// digestRoom gives out the memory of digests that is not in use.
func (h *history) digestRoom(n int64) device.Address {
	h.Helper()
	if n > digestsBytes {
		h.Fatalf("digests of %d B", n)
	}
	return h.m.Base() + device.Address(h.turn*digestsBytes)
}

// checkpoint makes the next checkpoint on both sides and compares them.
func (h *history) checkpoint() {
	h.Helper()
	var input []dedup.Region
	for _, r := range h.regions {
		input = append(input, dedup.Region{Name: r.name, Bytes: r.data})
	}
	want, wantMap, err := h.here.Dedup(h.number, input)
	if err != nil {
		h.Fatalf("%v", err)
	}
	got, gotMap, err := h.finish(h.queue())
	if errors.Is(err, lineage.ErrReferences) {
		h.release(h.kept)
		if err = h.there.Rebase(); err == nil {
			got, gotMap, err = h.finish(h.queue())
		}
	}
	if err != nil {
		h.Fatalf("checkpoint %d: %v", h.number, err)
	}
	h.release(h.kept)
	h.compare(got, want)
	if !bytes.Equal(gotMap.Append(nil), wantMap.Append(nil)) {
		h.Fatalf("checkpoint %d: another map", h.number)
	}
	if n, _ := h.here.Recorded(); h.options.Method != difference.Basic && int64(n) != h.there.Recorded() {
		h.Fatalf("checkpoint %d: %d entries in the record, want %d", h.number, h.there.Recorded(), n)
	}
	for _, n := range h.here.Known() {
		if !slices.Contains(h.there.Known(), n) {
			h.Fatalf("checkpoint %d is not known any more: %d", n, h.there.Known())
		}
	}
}

func (h *history) compare(got, want *difference.Difference) {
	h.Helper()
	a, err := got.Append(nil)
	if err != nil {
		h.Fatalf("checkpoint %d: %v", h.number, err)
	}
	b, err := want.Append(nil)
	if err != nil {
		h.Fatalf("%v", err)
	}
	if !bytes.Equal(a, b) {
		got.Data, want.Data = nil, nil
		h.Fatalf("checkpoint %d of %+v: other differences: %d B %+v, want %d B %+v", h.number, h.options, len(a), got, len(b), want)
	}
}

// finish waits for a checkpoint, reads its result, and makes its difference.
func (h *history) finish(k *lineage.Checkpoint, list []lineage.Region, m lineage.Memory) (*difference.Difference, *difference.Map, error) {
	h.Helper()
	if _, err := h.there.Need(h.number+1, list); !errors.Is(err, lineage.ErrBusy) {
		h.Fatalf("beside a checkpoint: %v", err)
	}
	h.m.Wait()
	h.verify()
	at, n := k.Metadata()
	if at+n != k.ResultBytes() {
		h.Fatalf("metadata from %d to %d in a result of %d B", at, at+n, k.ResultBytes())
	}
	result := h.m.Read(m.Result, k.ResultBytes())
	return k.Finish(result[at:], result[:k.Counts().Bytes])
}

// verify compares the memory that no work may write.
func (h *history) verify() {
	h.Helper()
	now := h.m.Read(h.base(), int64(len(h.image)))
	for _, g := range h.guards {
		if !bytes.Equal(now[g.from:g.to], h.image[g.from:g.to]) {
			h.Fatalf("checkpoint %d: bytes from %d to %d were written, which no work may write", h.number, g.from, g.to)
		}
	}
}
