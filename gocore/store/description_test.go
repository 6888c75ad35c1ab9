package store

import (
	"slices"
	"testing"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/operation"
)

// severalRegions captures regions of several sizes under a key, and returns them.
func severalRegions(c *client, k int64, seed uint64, meta string) (regions [][]byte, ticket uint64) {
	c.t.Helper()
	a := operation.CheckpointArgs{Key: model.NumberKey(k), Layout: []byte("regions"), Meta: []byte(meta), Tier: status.TierNone, FD: c.fd}
	for i, n := range []int{10, 0, 1, checksum.LeafBytes, checksum.LeafBytes + 1, 3*checksum.LeafBytes - 7} {
		p := random(n, seed+uint64(i))
		r := region(p, a.Slot)
		a.Regions, a.Slot = append(a.Regions, r), (a.Slot+int64(n)+4095)&^4095
		regions = append(regions, p)
	}
	out, err := c.write(&a)
	if err != nil {
		c.t.Fatal(err)
	}
	return regions, out.Ticket
}

// describes checks a description against the bytes that were captured.
func describes(t *testing.T, h *History, k int64, regions [][]byte, meta string, knowsLeaves bool) Description {
	t.Helper()
	d, err := h.Describe(model.NumberKey(k))
	if err != nil {
		t.Fatal(err)
	}
	if d.Meta != meta || len(d.Sums) != len(regions) || len(d.Leaves) != len(regions) {
		t.Fatalf("meta %q, %d checksums, hashes of leaves of %d regions", d.Meta, len(d.Sums), len(d.Leaves))
	}
	for i, p := range regions {
		if d.Sums[i] != checksum.Sum(p) {
			t.Errorf("region %d has another checksum", i)
		}
		var want []uint64
		for at := 0; knowsLeaves && len(p) > checksum.LeafBytes && at < len(p); at += checksum.LeafBytes {
			want = append(want, checksum.Leaf(p[at:min(at+checksum.LeafBytes, len(p))]))
		}
		if !slices.Equal(d.Leaves[i], want) {
			t.Errorf("region %d has other hashes of leaves: %x, not %x", i, d.Leaves[i], want)
		}
	}
	return d
}

// A version is described by the checksums of its captured bytes in memory, on disk with a record and without one, and in a store that only reads. Each
// version of a key has a serial of its own.
func TestDescribe(t *testing.T) {
	c := stored(16<<20, 64<<20, vfs.NewMem(256<<20))
	c.SegmentBytes, c.LazyRows = 8<<20, true
	s := open(t, c)
	h := newClient(t, s, "h")
	regions, ticket := severalRegions(h, 1, 7, "note")
	if d := describes(t, h.h, 1, regions, "note", true); d.Ticket != ticket || d.Slot == 0 {
		t.Errorf("%+v, not of ticket %d", d, ticket)
	}
	if err := h.wait(ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	written := describes(t, h.h, 1, regions, "note", true)
	if written.Serial == 0 || written.Ticket != ticket {
		t.Errorf("the durable version has serial %d and ticket %d", written.Serial, written.Ticket)
	}
	again, ticket := severalRegions(h, 1, 8, "")
	if err := h.wait(ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	latest := describes(t, h.h, 1, again, "", true)
	if latest.Serial <= written.Serial || latest.Ticket == written.Ticket {
		t.Errorf("the next version has serial %d behind %d, and ticket %d", latest.Serial, written.Serial, latest.Ticket)
	}
	second, ticket := severalRegions(h, 2, 9, "")
	if err := h.wait(ticket, status.TierDisk); err != nil {
		t.Fatal(err)
	}
	shut(t, s)
	for _, reads := range []bool{false, true} {
		c.ReadOnly = reads
		s = reopened(t, c)
		h = newClient(t, s, "h")
		describes(t, h.h, 2, second, "", true) // the first of its layout gets a record
		if d := describes(t, h.h, 1, again, "", true); d.Serial != latest.Serial || d.Ticket != 0 {
			t.Errorf("after opening: serial %d, not %d, and ticket %d", d.Serial, latest.Serial, d.Ticket)
		}
		s.Lock()
		h.h.h.Get(model.NumberKey(1))
		s.Unlock()
		if d := describes(t, h.h, 1, again, "", true); d.Serial != latest.Serial || d.Ticket == 0 {
			t.Errorf("with a record: serial %d, not %d, and ticket %d", d.Serial, latest.Serial, d.Ticket)
		}
		_, err := h.h.Describe(model.NumberKey(3))
		wants(t, err, status.NotFound)
		shut(t, s)
		_, err = h.h.Describe(model.NumberKey(1))
		wants(t, err, status.Closed)
	}
}

// Without checksums a description has none.
func TestDescribeWithoutChecksums(t *testing.T) {
	c := stored(16<<20, 64<<20, vfs.NewMem(256<<20))
	c.SegmentBytes, c.Checksum, c.Verify = 8<<20, false, "off"
	h := newClient(t, open(t, c), "h")
	severalRegions(h, 1, 7, "note")
	d, err := h.h.Describe(model.NumberKey(1))
	if err != nil || d.Sums != nil || d.Leaves != nil || d.Meta != "note" {
		t.Errorf("%+v, %v", d, err)
	}
	h.drop(1)
	_, err = h.h.Describe(model.NumberKey(1))
	wants(t, err, status.NotFound)
}

// The checksums and hashes of an encoded checkpoint are those of the captured bytes.
func TestDescribeEncoded(t *testing.T) {
	c := stored(16<<20, 64<<20, vfs.NewMem(256<<20))
	c.SegmentBytes, c.LazyRows = 8<<20, true
	s := open(t, c)
	h := reducing(t, s, "codec")
	all := [][]byte{smooth(5*checksum.LeafBytes+8, 1), smooth(1000, 2)}
	for k, p := range all {
		h.mustPutFloats(int64(k), p, status.TierDisk)
	}
	if h.reducedTo().encoded == 0 {
		t.Fatal("nothing was encoded")
	}
	shut(t, s)
	h = newClient(t, reopened(t, c), "h")
	for k, p := range all {
		describes(t, h.h, int64(k), [][]byte{p}, "", true)
		h.mustGet(int64(k), p, operation.RestoreArgs{})
		describes(t, h.h, int64(k), [][]byte{p}, "", true)
	}
}
