package path

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/cache"
	"velocpy/gocore/config"
	"velocpy/gocore/device"
	"velocpy/gocore/device/hostdevice"
	"velocpy/gocore/model"
	"velocpy/gocore/tier/devicememory"
	"velocpy/gocore/transfer/borrow"
	"velocpy/gocore/transfer/slots"
)

// drawn are regions of a caller, and the bytes that a slot of them holds.
type drawn struct {
	regions []model.Region
	spans   []model.Span
	slot    []byte
	memory  [][]byte // keeps the caller's arrays
}

func (d *drawn) end() int64 {
	last := d.spans[len(d.spans)-1]
	return last.Offset + last.Bytes
}

// draw makes regions of all kinds: empty ones, runs of bytes around the length of a leaf, and rows with gaps between them.
func draw(t *rapid.T, place int32) *drawn {
	d := &drawn{}
	r := rand.NewChaCha8([32]byte{rapid.Byte().Draw(t, "seed")})
	at := int64(0)
	for range rapid.IntRange(1, 4).Draw(t, "regions") {
		at += int64(rapid.SampledFrom([]int{0, 64, 4096, 70_000}).Draw(t, "gap"))
		region := model.Region{Offset: at, Place: place * rapid.Int32Range(0, 1).Draw(t, "place")}
		rows, row, gap := int64(1), int64(rapid.SampledFrom([]int{0, 1, 77, checksum.LeafBytes - 1, checksum.LeafBytes + 5}).Draw(t, "bytes")), int64(0)
		if row < checksum.LeafBytes && rapid.Bool().Draw(t, "strided") {
			rows, gap = rapid.Int64Range(1, 4).Draw(t, "rows"), rapid.Int64Range(0, 9).Draw(t, "row gap")
		}
		memory := make([]byte, rows*(row+gap)+1)
		_, _ = r.Read(memory)
		region.Bytes = rows * row
		region.Mem.Base = unsafe.Pointer(unsafe.SliceData(memory))
		if rows > 1 || gap > 0 {
			region.Mem.Shape, region.Mem.Strides, region.Mem.Item = []int64{rows, row}, []int64{row + gap, 1}, 1
		}
		d.slot = append(d.slot, make([]byte, at+region.Bytes-int64(len(d.slot)))...)
		for i := range rows {
			copy(d.slot[at+i*row:], memory[i*(row+gap):][:row])
		}
		d.memory, d.regions = append(d.memory, memory), append(d.regions, region)
		d.spans = append(d.spans, model.Span{Offset: at, Bytes: region.Bytes})
		at = (at + region.Bytes + 63) / 64 * 64
	}
	return d
}

// compare compares bytes that came from a source, and their checksums, with those of the caller.
func (d *drawn) compare(t *rapid.T, got []byte, sums []uint64) {
	t.Helper()
	for i, span := range d.spans {
		want := d.slot[span.Offset : span.Offset+span.Bytes]
		if !bytes.Equal(got[span.Offset:span.Offset+span.Bytes], want) {
			t.Fatalf("region %d differs", i)
		}
		if sums[i] != checksum.Sum(want) {
			t.Fatalf("region %d of %d bytes: its checksum is %x, not %x", i, span.Bytes, sums[i], checksum.Sum(want))
		}
	}
}

// readParts reads a slot part by part, in parts of a drawn length.
func readParts(t *rapid.T, s source, end int64) []byte {
	got, length := make([]byte, end), rapid.Int64Range(1, max(end, 1)).Draw(t, "length of a part")
	if rapid.Bool().Draw(t, "leaves") {
		length = checksum.LeafBytes
	}
	told := int64(0)
	for at := int64(0); at == 0 || at < end; at += length {
		if err := s.Read(at, got[at:min(at+length, end)], func(_, n int64) { told += n }); err != nil {
			t.Fatal(err)
		}
	}
	if told > end {
		t.Fatalf("told of %d bytes of %d", told, end)
	}
	return got
}

func checked() *cache.Cache {
	return cache.New(config.Settings{Config: config.Config{Checksum: true, Cut: 300 << 10}})
}

func TestHostRegions(t *testing.T) {
	c := checked()
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 0)
		whole, parts := &hostRegions{c: c, src: borrow.New(d.regions), end: d.end()}, &hostRegions{c: c, src: borrow.New(d.regions), end: d.end()}
		got := make([]byte, d.end())
		if err := whole.Read(0, got, func(int64, int64) {}); err != nil {
			t.Fatal(err)
		}
		d.compare(t, got, whole.sums)
		d.compare(t, readParts(t, parts, d.end()), parts.sums)
		parts.close()
	})
}

func TestRegionsOnADevice(t *testing.T) {
	a, err := devicememory.Open(hostdevice.New(hostdevice.Options{}), 0, 1<<20, devicememory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() }) // the bounce buffer is pinned until the device is closed, which this device reports
	lane, err := a.Device.Lane(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lane.Close() }) // nothing is queued any more
	c := checked()
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 1)
		open := func() *deviceRegions {
			regions := hostRegions{c: c, src: borrow.New(d.regions), end: d.end()}
			return &deviceRegions{hostRegions: regions, a: a, spans: d.spans, await: func(int64) int64 { return 0 }}
		}
		whole, parts := open(), open()
		whole.lane = lane
		got := make([]byte, d.end())
		if err := whole.Read(0, got, func(int64, int64) {}); err != nil {
			t.Fatal(err)
		}
		d.compare(t, got, whole.sums)
		d.compare(t, readParts(t, parts, d.end()), parts.sums)
		parts.close()
	})
}

// A caller that takes its memory back ends the read with the next piece.
func TestRegionsThatAreTakenBack(t *testing.T) {
	c := checked()
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 0)
		s := &hostRegions{c: c, src: borrow.New(d.regions), end: d.end()}
		s.src.Abandon()
		err := s.Read(0, make([]byte, d.end()/2), func(int64, int64) {})
		if reaches := d.spans[0].Bytes > 0 && d.spans[0].Offset < d.end()/2; reaches && !errors.Is(err, borrow.ErrAbandoned) {
			t.Fatalf("memory was read that the caller has back: %v", err)
		}
	})
}

// leavesOf are the hashes of the leaves of regions with more than one.
func leavesOf(d *drawn) (all []uint64) {
	for _, span := range d.spans {
		if span.Bytes > checksum.LeafBytes {
			for part := range slices.Chunk(d.slot[span.Offset:span.Offset+span.Bytes], checksum.LeafBytes) {
				all = append(all, checksum.Leaf(part))
			}
		}
	}
	return all
}

// Each region is copied by one lane. Neither lane has more of the large ones than the other has, and one of these.
func TestRegionsAreSharedOutAmongLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []model.Region
		largest := int64(0)
		for range rapid.IntRange(0, 30).Draw(t, "regions") {
			r := model.Region{Bytes: rapid.Int64Range(0, 3*OwnCopyBytes).Draw(t, "bytes"), Place: rapid.Int32Range(0, 4).Draw(t, "place")}
			if r.Place > 0 && r.Bytes >= OwnCopyBytes {
				largest = max(largest, r.Bytes)
			}
			all = append(all, r)
		}
		first, second := (&deviceRegions{hostRegions: hostRegions{src: borrow.New(all)}}).halves()
		there := append(slices.Clone(first), second...)
		slices.Sort(there)
		for i, number := range there {
			if int(number) != i {
				t.Fatalf("%v and %v", first, second)
			}
		}
		if len(there) != len(all) {
			t.Fatalf("%d of %d regions", len(there), len(all))
		}
		more := int64(0)
		for _, i := range second {
			if r := &all[i]; !together(r) || r.Bytes < OwnCopyBytes {
				t.Errorf("region %d is in the second lane: %+v", i, r)
			}
			more += all[i].Bytes
		}
		for _, i := range first {
			more -= all[i].Bytes
		}
		if more > largest {
			t.Errorf("the second lane has %d bytes more", more)
		}
	})
}

// The device hashes what lies together in its memory, and the processor the rest.
func TestCapturesIntoHostMemory(t *testing.T) {
	a, err := devicememory.Open(hostdevice.New(hostdevice.Options{}), 0, 1<<20, devicememory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() }) // the bounce buffer is pinned until the device is closed, which this device reports
	c := checked()
	rapid.Check(t, func(t *rapid.T) {
		d := draw(t, 1)
		pinned := rapid.Bool().Draw(t, "pinned")
		src, got := borrow.New(d.regions), make([]byte, d.end()+1) // an empty region at the end has an address of it too
		hashes := 0
		for i := range d.regions {
			if together(&d.regions[i]) {
				hashes++
			}
		}
		sums, err := CaptureToHost(c, a, src, got, d.spans) // through the bounce buffer: a device cannot access this memory
		if pinned {
			copies := &deviceRegions{hostRegions: hostRegions{c: c, src: src}, a: a, spans: d.spans}
			sums, err = copies.capture(got, func(lane device.Lane, which []int32) error {
				_, err := lane.Gather(devicememory.Pieces(device.AddressOf(got), d.spans, which, slots.Selected(d.regions, which)), false)
				return err
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if known := sums != nil; known != (pinned && hashes > 0) {
			t.Fatalf("checksums: %v, of %d regions for the device, pinned: %v", known, hashes, pinned)
		}
		if sums == nil {
			sums = &Sums{Regions: make([]uint64, len(d.spans))}
			for i, span := range d.spans {
				sums.Regions[i] = checksum.Sum(got[span.Offset : span.Offset+span.Bytes])
			}
		} else if want := leavesOf(d); sums.Leaves != nil && !slices.Equal(sums.Leaves, want) { // this device does not tell them
			t.Fatalf("%d hashes of leaves, not %d", len(sums.Leaves), len(want))
		}
		d.compare(t, got, sums.Regions)
	})
}
