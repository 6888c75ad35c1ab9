package inspect

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/base/description"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/reduction/regions"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
	"velocpy/gocore/tier/disk/segment"
)

const lineageChunk = 64

// lineageStore writes a history "h" whose checkpoints are differences of one lineage.
type lineageStore struct {
	t       rapid.TB
	fs      *vfs.Mem
	dir     *durable.Dir
	landed  chan error
	writer  *object.Writer
	objects map[uint32]model.Source
	next    int64
	serial  uint64
}

func newLineageStore(t rapid.TB, method difference.Method) *lineageStore {
	s := &lineageStore{t: t, fs: vfs.NewMem(64 << 20), landed: make(chan error, 1), objects: map[uint32]model.Source{}}
	o := durable.Options{FS: s.fs, Dir: dir, Capacity: 64 << 20, SegmentBytes: 1 << 20, Describes: description.Check}
	o.Land = func(group []*durable.Change, _ []int64) {
		for _, c := range group {
			s.dir.Apply(c)
			s.landed <- c.Err
		}
	}
	var err error
	if s.dir, err = durable.Open(o); err != nil {
		t.Fatal(err)
	}
	if s.writer, err = object.NewWriter(object.Options{Method: method, Chunk: lineageChunk, Lineage: 0xabc, Record: 4 << 20, Parallel: inTurn}); err != nil {
		t.Fatal(err)
	}
	return s
}

func inTurn(n int, work func(i int)) {
	for i := range n {
		work(i)
	}
}

// layoutOf describes one-dimensional regions of bytes.
func layoutOf(all []dedup.Region) *catalog.Layout {
	l := &catalog.Layout{}
	le := binary.LittleEndian
	p := le.AppendUint32([]byte{'L', 2, 0}, uint32(len(all)))
	for _, r := range all {
		p = append(le.AppendUint32(p, uint32(len(r.Name))), r.Name...)
		p = le.AppendUint32(append(p, 0), 0)
		p = append(le.AppendUint32(p, 3), "|u1"...)
		p = append(le.AppendUint64(p, 1), 1)
		p = append(le.AppendUint64(p, uint64(len(r.Bytes))), 0)
		p = le.AppendUint64(le.AppendUint64(p, uint64(l.Slot)), uint64(len(r.Bytes)))
		l.Spans = append(l.Spans, model.Span{Offset: l.Slot, Bytes: int64(len(r.Bytes))})
		l.Slot += (int64(len(r.Bytes)) + 63) &^ 63
	}
	l.Text = string(p)
	return l
}

func (s *lineageStore) do(c *durable.Change) {
	s.dir.Commit(c)
	if err := <-s.landed; err != nil {
		s.t.Fatal(err)
	}
}

// add writes a checkpoint; its key is the next number.
func (s *lineageStore) add(all []dedup.Region) {
	draft, err := s.writer.Draft(all)
	if err != nil {
		s.t.Fatal(err)
	}
	var sources []model.Source
	for _, n := range draft.Sources() {
		sources = append(sources, s.objects[n])
	}
	var stored []byte
	choices := slices.Repeat([]regions.Choice{{Kind: codec.Int8, Modes: codec.AllModes}}, len(all))
	d, err := draft.Write(sources, choices, model.MostData, func(p []byte) error {
		stored = append(stored, p...)
		return nil
	}, regions.Options{Goroutines: 1, Room: new(regions.Room)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.objects[d.Number] = model.Source{Number: d.Number, Data: d.Data, Meta: d.Meta, Offset: s.next}
	s.serial++
	row := &catalog.Row{Key: model.NumberKey(int64(d.Number)), Serial: s.serial, Layout: layoutOf(all), Align: 64, Content: catalog.Difference, Difference: d}
	s.put(row, stored)
}

// put writes a row and its bytes.
func (s *lineageStore) put(row *catalog.Row, stored []byte) {
	stored = append(stored, make([]byte, -len(stored)&4095)...)
	if err := s.dir.Space().Write(s.next, stored); err != nil {
		s.t.Fatal(err)
	}
	s.do(&durable.Change{History: "h", Off: s.next, Put: row})
	s.next += int64(len(stored))
}

func (s *lineageStore) drop(key int64) {
	s.do(&durable.Change{History: "h", Key: model.NumberKey(key), Serial: uint64(key), Drop: true})
}

func (s *lineageStore) close() {
	if err := s.dir.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// flip flips a bit of the space, in its data file.
func (s *lineageStore) flip(at int64) {
	name, off := s.lies(at)
	f, err := s.fs.Open(name, true, false)
	if err != nil {
		s.t.Fatal(err)
	}
	b := []byte{0}
	_, err = f.ReadAt(b, off)
	b[0] ^= 4
	if err == nil {
		_, err = f.WriteAt(b, off)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		s.t.Fatal(err)
	}
}

// lies returns the data file that has a byte of the space, and the byte's offset in it.
func (s *lineageStore) lies(at int64) (name string, off int64) {
	const bytes = 1 << 20
	x := catalog.Extent{File: uint64(at/bytes) + 1, Offset: at % bytes}
	return filepath.Join(dir, segment.FileName(x.File)), s.dir.InFile(x)
}

// metadata is where the metadata of a checkpoint's own object lie in the space.
func (s *lineageStore) metadata(number uint32) int64 {
	return s.objects[number].Offset + s.objects[number].Data
}

type shownOrigin struct {
	Number *int64
	Key    *int64
	Stored int64 `json:"stored_bytes"`
	Bytes  int64
}

type shownRegion struct {
	Bytes  int64
	Shares [][2]int64
	Bins   []int
	Own    []int
}

// looker asks about lineages.
type looker struct {
	t    rapid.TB
	desk *Desk
}

func look(t rapid.TB, fs vfs.FS) *looker {
	l := &looker{t, &Desk{FS: fs, Describes: description.Check}}
	if _, err := l.desk.Ask(fmt.Appendf(nil, `{"op": "open", "path": "%x", "view": 1}`, dir), nil, Room); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *looker) close() {
	if _, err := l.desk.Ask([]byte(`{"op": "close", "view": 1}`), nil, Room); err != nil {
		l.t.Fatal(err)
	}
}

// ask returns the lines of all pages.
func (l *looker) ask(key int64, what string, bins int) (all [][]byte, err error) {
	for from := 0; ; {
		q := fmt.Sprintf(`{"op": "lineage", "view": 1, "history": "68", "key": {"number": %d}, "what": %q, "bins": %d, "from": %d}`, key, what, bins, from)
		reply, err := l.desk.Ask([]byte(q), nil, Room)
		if err != nil {
			return nil, err
		}
		if len(reply) > Room {
			l.t.Fatalf("an answer has %d bytes", len(reply))
		}
		head, body, _ := bytes.Cut(reply, []byte("\n"))
		if len(body) > 0 {
			all = append(all, bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))...)
		}
		var next struct{ Next *int }
		if err := json.Unmarshal(head, &next); err != nil {
			l.t.Fatal(err)
		}
		if next.Next == nil {
			return all, nil
		}
		from = *next.Next
	}
}

func parsed[T any](t rapid.TB, lines [][]byte) []T {
	all := make([]T, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line, &all[i]); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	return all
}

func (l *looker) lineage(key int64, bins int) ([]shownOrigin, []shownRegion) {
	origins, err := l.ask(key, "objects", 0)
	if err != nil {
		l.t.Fatal(err)
	}
	regions, err := l.ask(key, "regions", bins)
	if err != nil {
		l.t.Fatal(err)
	}
	return parsed[shownOrigin](l.t, origins), parsed[shownRegion](l.t, regions)
}

// firsts is a record of which checkpoint has stored a chunk first.
type firsts map[string]int64

// owners returns the checkpoint that has each byte of a region.
func (f firsts) owners(number int64, region []byte) []int64 {
	owners := make([]int64, 0, len(region))
	for chunk := range slices.Chunk(region, lineageChunk) {
		first, ok := f[string(chunk)]
		if !ok {
			first = number
			f[string(chunk)] = first
		}
		owners = append(owners, slices.Repeat([]int64{first}, len(chunk))...)
	}
	return owners
}

// drawState changes, moves, lengthens, shortens, removes and adds regions.
func drawState(t *rapid.T, before []dedup.Region) []dedup.Region {
	var now []dedup.Region
	for _, name := range []string{"a", "größe", "<c>"} {
		i := slices.IndexFunc(before, func(r dedup.Region) bool { return r.Name == name })
		var p []byte
		if i >= 0 {
			p = slices.Clone(before[i].Bytes)
		}
		switch rapid.SampledFrom([]string{"stay", "change", "change", "move", "resize", "vanish"}).Draw(t, name) {
		case "vanish":
			continue
		case "change":
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				if len(p) > 0 {
					p[rapid.IntRange(0, len(p)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
				}
			}
		case "move":
			if chunks := len(p) / lineageChunk; chunks > 1 {
				from, to := rapid.IntRange(0, chunks-1).Draw(t, "from"), rapid.IntRange(0, chunks-1).Draw(t, "to")
				copy(p[to*lineageChunk:], p[from*lineageChunk:(from+1)*lineageChunk])
			}
		case "resize":
			more := make([]byte, rapid.SampledFrom([]int{0, 1, 63, 64, 65, 700, 2000}).Draw(t, "size"))
			for k := range more {
				more[k] = byte(k>>6*37 + k)
			}
			copy(more, p)
			p = more
		}
		now = append(now, dedup.Region{Name: name, Bytes: p})
	}
	return now
}

// A lineage is the one that a comparison of all chunks with all earlier ones gives.
func TestLineageIsThatOfTheBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newLineageStore(t, rapid.SampledFrom([]difference.Method{difference.List, difference.Tree, difference.Runs}).Draw(t, "method"))
		record := firsts{}
		var now []dedup.Region
		count := rapid.Int64Range(1, 6).Draw(t, "checkpoints")
		owners := map[int64][][]int64{} // by checkpoint, region and byte
		for number := int64(1); number <= count; number++ {
			now = drawState(t, now)
			var of [][]int64
			for _, r := range now {
				of = append(of, record.owners(number, r.Bytes))
			}
			owners[number] = of
			s.add(slices.Clone(now))
		}
		dropped := map[int64]bool{}
		for number := int64(1); number < count; number++ {
			if rapid.Bool().Draw(t, "dropped") {
				s.drop(number)
				dropped[number] = true
			}
		}
		s.close()
		l := look(t, s.fs)
		defer l.close()
		bins := rapid.SampledFrom([]int{1, 2, 7, 64, 1000, mostBins}).Draw(t, "bins")
		for number, of := range owners {
			if !dropped[number] {
				origins, regions := l.lineage(number, bins)
				verify(t, number, dropped, origins, s.objects)
				verifyRegions(t, bins, of, origins, regions)
			}
		}
	})
}

// verify compares the objects that a checkpoint consists of with what was written.
func verify(t *rapid.T, number int64, dropped map[int64]bool, origins []shownOrigin, objects map[uint32]model.Source) {
	for i, o := range origins {
		if o.Number == nil || *o.Number > number || (*o.Number == number) != (i == len(origins)-1) || i > 0 && *origins[i-1].Number >= *o.Number {
			t.Fatalf("checkpoint %d: object %d is %+v", number, i, o)
		}
		if gone := o.Key == nil; gone != dropped[*o.Number] || !gone && *o.Key != *o.Number {
			t.Fatalf("checkpoint %d: number %d is of %v", number, *o.Number, o.Key)
		}
		object := objects[uint32(*o.Number)]
		if want := (object.Bytes() + 4095) &^ 4095; o.Stored != want {
			t.Fatalf("checkpoint %d: number %d takes %d bytes, not %d", number, *o.Number, o.Stored, want)
		}
	}
}

// verifyRegions compares the shares and bins of regions with the owners of their bytes.
func verifyRegions(t *rapid.T, bins int, owners [][]int64, origins []shownOrigin, regions []shownRegion) {
	if len(regions) != len(owners) {
		t.Fatalf("%d regions, not %d", len(regions), len(owners))
	}
	totals := map[int64]int64{}
	for i, r := range regions {
		all := map[int64]int64{}
		for _, owner := range owners[i] {
			all[owner]++
			totals[owner]++
		}
		for _, share := range r.Shares {
			if n := *origins[share[0]].Number; all[n] != share[1] || share[1] == 0 {
				t.Fatalf("region %d has %d bytes of number %d, not %d", i, share[1], n, all[n])
			}
		}
		if int(r.Bytes) != len(owners[i]) || len(r.Shares) != len(all) || len(r.Bins) != min(bins, len(owners[i])) || len(r.Own) != len(r.Bins) {
			t.Fatalf("region %d: %d bytes, %d shares and %d bins for %d bytes", i, r.Bytes, len(r.Shares), len(r.Bins), len(owners[i]))
		}
		for k, origin := range r.Bins {
			part := map[int64]int{}
			for _, owner := range owners[i][k*len(owners[i])/len(r.Bins) : (k+1)*len(owners[i])/len(r.Bins)] {
				part[owner]++
			}
			if n := part[*origins[len(origins)-1].Number]; r.Own[k] != n {
				t.Fatalf("region %d, bin %d of %d: %d own bytes, not %d", i, k, len(r.Bins), r.Own[k], n)
			}
			chosen := *origins[origin].Number
			for owner, n := range part {
				if n > part[chosen] || n == part[chosen] && owner > chosen {
					t.Fatalf("region %d, bin %d of %d: number %d, but %v", i, k, len(r.Bins), chosen, part)
				}
			}
		}
	}
	for _, o := range origins {
		if o.Bytes != totals[*o.Number] {
			t.Fatalf("number %d has %d bytes, not %d", *o.Number, o.Bytes, totals[*o.Number])
		}
	}
}

// A checkpoint that is no difference consists of its own object.
func TestLineageOfARawCheckpoint(t *testing.T) {
	s := newLineageStore(t, difference.Runs)
	all := []dedup.Region{{Name: "a", Bytes: make([]byte, 100)}, {Name: "empty"}, {Name: "b", Bytes: make([]byte, 5000)}}
	layout := layoutOf(all)
	s.put(&catalog.Row{Key: model.NumberKey(7), Serial: 1, Layout: layout, Align: 64}, make([]byte, layout.Slot))
	s.close()
	l := look(t, s.fs)
	defer l.close()
	origins, regions := l.lineage(7, 3)
	if len(origins) != 1 || origins[0].Number != nil || *origins[0].Key != 7 || origins[0].Stored != 8192 || origins[0].Bytes != 5100 {
		t.Errorf("%+v", origins)
	}
	want := []shownRegion{
		{100, [][2]int64{{0, 100}}, []int{0, 0, 0}, []int{33, 33, 34}}, {},
		{5000, [][2]int64{{0, 5000}}, []int{0, 0, 0}, []int{1666, 1667, 1667}},
	}
	if fmt.Sprint(regions) != fmt.Sprint(want) {
		t.Errorf("%v, not %v", regions, want)
	}
}

// relatedLineage writes four checkpoints, each of which needs the objects of all earlier ones.
func relatedLineage(t *testing.T) *lineageStore {
	s := newLineageStore(t, difference.Runs)
	p := make([]byte, 10_000)
	for i := range p {
		p[i] = byte(i >> 6 * 37)
	}
	for i := range 4 {
		p[i*1000] = 255
		s.add([]dedup.Region{{Name: "a", Bytes: slices.Clone(p)}})
	}
	return s
}

// A whole checkpoint has all of its bytes in its own object, also if it has a reference. No container of the second one needs it here.
func TestLineageOfWholeCheckpoints(t *testing.T) {
	s := newLineageStore(t, difference.Full)
	all := []dedup.Region{{Name: "a", Bytes: bytes.Repeat([]byte("ab"), 3<<18)}, {Name: "b"}, {Name: "c", Bytes: []byte("some")}}
	layout := layoutOf(all)
	for number := uint32(1); number <= 2; number++ {
		w := &object.Whole{Lineage: 0xabc, Number: number, Names: []string{"a", "b", "c"}, Spans: layout.Spans}
		if of, ok := s.objects[1]; ok {
			w.Reference = &of
		}
		choices := slices.Repeat([]regions.Choice{{Kind: codec.Int8, Modes: codec.AllModes}}, len(all))
		var stored []byte
		var err error
		w.Encoding, err = regions.Encode(layout.Spans, choices, 4*model.PartGrain, model.MostData, func(at int64, room []byte) ([]byte, error) {
			for i, span := range layout.Spans {
				if at >= span.Offset && at < span.End() {
					return all[i].Bytes[at-span.Offset:][:len(room)], nil
				}
			}
			return room, nil
		}, func(p []byte) error {
			stored = append(stored, p...)
			return nil
		}, regions.Options{Goroutines: 1, Room: new(regions.Room)})
		if err != nil {
			t.Fatal(err)
		}
		meta, err := w.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		d := w.Difference(int64(len(meta)))
		s.objects[number] = model.Source{Number: number, Data: d.Data, Meta: d.Meta, Offset: s.next}
		s.put(&catalog.Row{
			Key: model.NumberKey(int64(number)), Serial: uint64(number), Layout: layout, Align: 64, Content: catalog.ContentOf(nil, d), Difference: d,
		}, append(stored[:d.Data], meta...))
	}
	s.close()
	l := look(t, s.fs)
	defer l.close()
	origins, found := l.lineage(2, 4)
	const bytesOfAll = 3<<19 + 4
	if len(origins) != 2 || origins[0].Bytes != 0 || origins[1].Bytes != bytesOfAll || len(found) != 3 || !slices.Equal(found[0].Bins, []int{1, 1, 1, 1}) {
		t.Errorf("%+v, %+v", origins, found)
	}
}

func TestLineageOfManyRegions(t *testing.T) {
	s := newLineageStore(t, difference.Tree)
	var all []dedup.Region
	for i := range 300 {
		all = append(all, dedup.Region{Name: fmt.Sprint(i), Bytes: bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 2100)})
	}
	s.add(all)
	s.close()
	l := look(t, s.fs)
	defer l.close()
	lines, err := l.ask(1, "regions", mostBins)
	if err != nil || len(lines) != 300 {
		t.Fatal(len(lines), err)
	}
	if n := len(bytes.Join(lines, nil)); n < 3*Room {
		t.Errorf("%d bytes do not take several pages", n)
	}
	for i, r := range parsed[shownRegion](t, lines) {
		if r.Bytes != 4200 || len(r.Bins) != mostBins {
			t.Errorf("region %d: %d bytes, %d bins", i, r.Bytes, len(r.Bins))
		}
	}
}

// Damage to the metadata of an object is told of each checkpoint that needs it, and the message names the object.
// Containers are not read, nor the bodies of metadata that no map needs.
func TestLineageOfDamagedObjects(t *testing.T) {
	s := relatedLineage(t)
	s.drop(1)
	s.close()
	for number := uint32(1); number <= 4; number++ {
		for _, at := range []int64{s.objects[number].Offset, s.metadata(number), s.metadata(number) + 70} {
			s.flip(at)
			l := look(t, s.fs)
			for key := int64(1); key <= 4; key++ {
				_, err := l.ask(key, "objects", 0)
				var known *status.Error
				switch {
				case key == 1:
					if !errors.Is(err, status.Of(status.NotFound)) {
						t.Errorf("a dropped checkpoint: %v", err)
					}
				case at < s.metadata(number) || key < int64(number) || at > s.metadata(number) && key > int64(number):
					if err != nil {
						t.Errorf("object %d, byte %d: checkpoint %d: %v", number, at, key, err)
					}
				default:
					of := fmt.Sprintf("number %d of the lineage", number)
					if key == int64(number) {
						of = "its object"
					}
					if !errors.As(err, &known) || known.Code != status.Damaged || !strings.Contains(err.Error(), of) || !strings.Contains(err.Error(), "data-") {
						t.Errorf("object %d, byte %d: checkpoint %d: %v, not of %q", number, at, key, err, of)
					}
				}
			}
			l.close()
			s.flip(at)
		}
	}
}

// Where a data file ends before the metadata, these are missing. The checkpoints whose objects are there are answered.
func TestLineageOfMissingObjects(t *testing.T) {
	s := relatedLineage(t)
	s.close()
	name, off := s.lies(s.metadata(3))
	f, err := s.fs.Open(name, true, false)
	if err == nil {
		err = errors.Join(f.Truncate(off&^4095), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	l := look(t, s.fs)
	defer l.close()
	for key := int64(1); key <= 4; key++ {
		_, err := l.ask(key, "objects", 0)
		if key < 3 && err != nil {
			t.Errorf("checkpoint %d: %v", key, err)
		}
		if key >= 3 && (!errors.Is(err, status.Of(status.Damaged)) || !strings.Contains(err.Error(), "ends before")) {
			t.Errorf("checkpoint %d: %v", key, err)
		}
	}
}

func TestLineageOfALaterVersion(t *testing.T) {
	row := catalog.Row{Key: model.NumberKey(1), Content: catalog.Referring + 1}
	if _, err := new(Session).locate(row, "h"); !errors.Is(err, status.Of(status.Later)) {
		t.Errorf("%v", err)
	}
}

// What cannot be read is an error of the disk, and no damage.
func TestLineageOfUnreadableObjects(t *testing.T) {
	s := relatedLineage(t)
	s.close()
	faulty := vfs.NewFaulty(s.fs)
	l := look(t, faulty)
	defer l.close()
	name, off := s.lies(s.metadata(1))
	faulty.Add(&vfs.Rule{Ops: vfs.OpRead, Name: filepath.Base(name), From: off, To: off + 1, Err: unix.EIO})
	_, err := l.ask(4, "objects", 0)
	if !errors.Is(err, status.Of(status.IO)) || !errors.Is(err, unix.EIO) || !strings.Contains(err.Error(), "number 1 of the lineage") {
		t.Errorf("%v", err)
	}
}

// A checkpoint that a writer drops after the view was opened, and whose room it uses again, is gone rather than damaged.
func TestLineageOfACheckpointThatIsDroppedMeanwhile(t *testing.T) {
	s := relatedLineage(t)
	l := look(t, s.fs)
	defer l.close()
	s.drop(4)
	if err := s.dir.Space().Write(s.objects[4].Offset, make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.ask(4, "objects", 0); !errors.Is(err, status.Of(status.NotFound)) || !strings.Contains(err.Error(), "any more") {
		t.Errorf("%v", err)
	}
	s.close()
}

func TestRequestsForNoLineage(t *testing.T) {
	s := relatedLineage(t)
	s.close()
	l := look(t, s.fs)
	defer l.close()
	for _, bins := range []int{-1, 0, mostBins + 1} {
		if _, err := l.ask(3, "regions", bins); !errors.Is(err, status.Of(status.Invalid)) {
			t.Errorf("%d bins: %v", bins, err)
		}
	}
	if _, err := l.ask(3, "bytes", 1); !errors.Is(err, status.Of(status.Invalid)) {
		t.Errorf("%v", err)
	}
	if _, err := l.ask(9, "objects", 1); !errors.Is(err, status.Of(status.NotFound)) {
		t.Errorf("%v", err)
	}
}

// A description of a checkpoint says in which lineage it is.
func TestRowsTellTheirLineage(t *testing.T) {
	s := relatedLineage(t)
	s.serial++
	layout := layoutOf([]dedup.Region{{Name: "a", Bytes: make([]byte, 100)}})
	s.put(&catalog.Row{Key: model.NumberKey(9), Serial: s.serial, Layout: layout, Align: 64}, make([]byte, 100))
	s.close()
	desk := &Desk{FS: s.fs}
	ask(t, desk, map[string]any{"op": "open", "path": hex.EncodeToString([]byte(dir)), "view": 1})
	for key, want := range map[int64][2]any{2: {"0000000000000abc", 2.0}, 9: {nil, nil}} {
		facts, _ := ask(t, desk, map[string]any{"op": "row", "view": 1, "history": "68", "key": map[string]any{"number": key}})
		if got := [2]any{facts["lineage"], facts["number"]}; got != want {
			t.Errorf("checkpoint %d: %v, not %v", key, got, want)
		}
	}
	ask(t, desk, map[string]any{"op": "close", "view": 1})
}
