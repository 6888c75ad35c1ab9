package inspect

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/base/status"
	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/tier/disk/catalog"
	"velocpy/gocore/tier/disk/durable"
)

const dir = "/store"

// made creates a store with one row per key, each of one small region.
func made(t *testing.T, fs vfs.FS, keys ...model.Key) {
	t.Helper()
	landed := make(chan error, len(keys))
	o := durable.Options{FS: fs, Dir: dir, Capacity: 64 << 20, SegmentBytes: 1 << 20, Direct: true}
	var d *durable.Dir
	o.Land = func(group []*durable.Change, _ []int64) {
		for _, c := range group {
			d.Apply(c)
			landed <- c.Err
		}
	}
	var err error
	if d, err = durable.Open(o); err != nil {
		t.Fatal(err)
	}
	p := bytes.Repeat([]byte{7}, 100)
	l := &catalog.Layout{Layout: model.Layout{Slot: 100, Spans: []model.Span{{Offset: 0, Bytes: 100}}, Text: "text"}}
	for i, k := range keys {
		if err := d.Space().Write(int64(i)*4096, p); err != nil {
			t.Fatal(err)
		}
		d.Commit(&durable.Change{History: "h", Off: int64(i) * 4096, Put: &catalog.Row{Key: k, Serial: uint64(i) + 1, Layout: l, Sums: []uint64{checksum.Sum(p)}, Meta: "meta"}})
		if err := <-landed; err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// A listing and a description tell in what form a checkpoint is stored, and how many bytes it takes on disk.
func TestFormsOfRows(t *testing.T) {
	fs := vfs.NewMem(64 << 20)
	made(t, fs)
	d, err := durable.Open(durable.Options{FS: fs, Dir: dir, Capacity: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	l := &catalog.Layout{Layout: model.Layout{Slot: 100_000, Spans: []model.Span{{Offset: 0, Bytes: 100_000}}, Text: "text"}}
	for key := range int64(2) {
		row := &catalog.Row{Key: model.NumberKey(key), Serial: uint64(key + 1), Layout: l}
		p := make([]byte, 100_000)
		if key == 1 {
			to := make([]byte, codec.Bound(len(p)))
			n, err := codec.Encode(to, p, nil, codec.Options{Kind: codec.Float32, Modes: codec.AllModes})
			if err != nil {
				t.Fatal(err)
			}
			p, row.Content, row.Encoding = to[:n], catalog.Encoded, &model.Encoding{Part: model.PartGrain, Lengths: []uint32{uint32(n)}}
		}
		if err := d.Space().Write(key<<20, append(p, make([]byte, -len(p)&4095)...)); err != nil {
			t.Fatal(err)
		}
		d.Commit(&durable.Change{History: "h", Off: key << 20, Put: row})
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	desk := &Desk{FS: fs}
	ask(t, desk, map[string]any{"op": "open", "path": hex.EncodeToString([]byte(dir)), "view": 1})
	q := map[string]any{"op": "rows", "view": 1, "history": hex.EncodeToString([]byte("h")), "head": "{"}
	_, body := ask(t, desk, q)
	for key, line := range bytes.Split(bytes.TrimSpace(body), []byte("\n")) {
		var listed map[string]any
		if err := json.Unmarshal(line, &listed); err != nil {
			t.Fatal(err)
		}
		q["op"], q["key"] = "row", map[string]any{"number": key}
		described, _ := ask(t, desk, q)
		for _, facts := range []map[string]any{listed, described} {
			form, stored := []string{"raw", "encoded"}[key], []float64{102_400, 4096}[key]
			if facts["form"] != form || facts["stored_bytes"] != stored || facts["bytes"] != 100_000.0 || facts["readable"] != true {
				t.Errorf("%v, not %s with %v bytes", facts, form, stored)
			}
		}
	}
	for content, want := range map[catalog.Content]string{catalog.Difference: "difference", catalog.DifferenceSections: "difference", catalog.Referring + 1: "unknown"} {
		if got := string(appendForm(nil, content)); got != `, "form": "`+want+`"` {
			t.Error(got)
		}
	}
	ask(t, desk, map[string]any{"op": "close", "view": 1})
}

// A history needs the objects of checkpoints that are gone, each once.
func TestKeptObjects(t *testing.T) {
	s := catalog.New()
	w := catalog.NewWriter(s)
	l := &catalog.Layout{Layout: model.Layout{Slot: 100_000, Spans: []model.Span{{Offset: 0, Bytes: 100_000}}, Text: "text"}}
	at := func(number uint32) catalog.Extent {
		return catalog.Extent{File: 1, Offset: int64(number) << 20, Bytes: 4096 * int64(number)}
	}
	put := func(history string, number uint32, sources ...uint32) {
		row := &catalog.Row{Key: model.NumberKey(int64(number)), Serial: uint64(number), Layout: l, Content: catalog.Difference, Extents: []catalog.Extent{at(number)}}
		row.Difference = &model.Difference{Lineage: 7, Number: number, Meta: at(number).Bytes}
		for _, n := range sources {
			row.Difference.Sources = append(row.Difference.Sources, model.Source{Number: n, Meta: at(n).Bytes})
			row.Sources = append(row.Sources, []catalog.Extent{at(n)})
		}
		r := w.Record()
		if err := r.Put(history, row); err != nil {
			t.Fatal(err)
		}
		if err := w.Acknowledged(r); err != nil {
			t.Fatal(err)
		}
	}
	put("a", 3, 1, 2)
	put("a", 4, 2, 3)
	put("b", 6, 5)
	put("b", 7)
	want := map[string]int64{"a": 3 * 4096, "b": 5 * 4096}
	bytes := kept(s)
	for _, h := range s.Histories() {
		if bytes[h.ID] != want[h.Name] {
			t.Errorf("history %s needs %d bytes", h.Name, bytes[h.ID])
		}
	}
	id, _ := s.History("a")
	s.List(id, 0, func(b catalog.Brief) bool {
		var listed map[string]any
		if err := json.Unmarshal((&rowWriter{head: "{" + `"history": "a"`}).append(nil, &b), &listed); err != nil {
			t.Fatal(err)
		}
		sources, bytes := listed["sources"], listed["source_bytes"]
		if listed["form"] != "difference" || sources != 2.0 || b.Key == model.NumberKey(3) && bytes != 3*4096.0 || b.Key == model.NumberKey(4) && bytes != 5*4096.0 {
			t.Errorf("%v", listed)
		}
		return true
	})
}

// ask returns the object in the first line of an answer, and the body.
func ask(t *testing.T, d *Desk, q map[string]any) (map[string]any, []byte) {
	t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := d.Ask(text, nil, Room)
	if err != nil {
		t.Fatal(err)
	}
	if len(reply) > Room {
		t.Fatalf("an answer has %d bytes", len(reply))
	}
	head, body, _ := bytes.Cut(reply, []byte("\n"))
	var m map[string]any
	if err := json.Unmarshal(head, &m); err != nil {
		t.Fatal(err)
	}
	return m, body
}

// opened is how many views and backups are open.
func opened(d *Desk) int { return len(d.sessions.all) + len(d.backups.all) }

func TestPagesHaveEverythingOnce(t *testing.T) {
	fs := vfs.NewMem(256 << 20)
	var keys []model.Key
	for i := range 300 { // texts of up to 24 kB, of bytes that take six bytes each when escaped: several pages
		keys = append(keys, model.TextKey(fmt.Sprint(i)+strings.Repeat("\xff", 80*i)))
	}
	made(t, fs, keys...)
	d := &Desk{FS: fs}
	open := map[string]any{"op": "open", "path": hex.EncodeToString([]byte(dir)), "view": 7}
	ask(t, d, open)
	for _, head := range []string{"", "{"} {
		q := map[string]any{"op": "rows", "view": open["view"], "history": hex.EncodeToString([]byte("h")), "head": head}
		n, pages := 0, 0
		for more := true; more; pages++ {
			answer, body := ask(t, d, q)
			for _, line := range bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n")) {
				if !bytes.Contains(line, []byte(`"`+fmt.Sprint(n))) {
					t.Fatalf("row %d is %.60q", n, line)
				}
				if head != "" && !json.Valid(line) {
					t.Fatalf("row %d is no JSON", n)
				}
				n++
			}
			q["from"], more = answer["next"], answer["next"] != nil
			// Other requests may come between two pages, while the next page is being made.
			one := map[string]any{"op": "row", "view": open["view"], "history": q["history"], "key": map[string]any{"text": hex.EncodeToString([]byte(keys[n-1].Text))}}
			if facts, _ := ask(t, d, one); facts["serial"] != float64(n) {
				t.Fatalf("row %d: %v", n, facts)
			}
		}
		if n != len(keys) || pages < 3 {
			t.Errorf("%d rows in %d pages", n, pages)
		}
	}
	refused := map[string]any{"op": "rows", "view": open["view"], "history": hex.EncodeToString([]byte("h")), "from": 77}
	text, _ := json.Marshal(refused)
	if _, err := d.Ask(text, nil, Room); !errors.Is(err, status.Of(status.Invalid)) {
		t.Error(err)
	}
	if _, body := ask(t, d, map[string]any{
		"op": "blob", "view": open["view"], "history": hex.EncodeToString([]byte("h")), "what": "meta",
		"key": map[string]any{"text": hex.EncodeToString([]byte("0"))},
	}); string(body) != "meta" {
		t.Errorf("%q", body)
	}
	ask(t, d, map[string]any{"op": "close", "view": open["view"]})
	if n := opened(d); n != 0 || fs.OpenFiles() != 0 {
		t.Error(n, fs.OpenFiles())
	}
}

// A number that is in use, or 0, opens nothing. Closing a number that is not open succeeds.
func TestNumbersOfViews(t *testing.T) {
	fs := vfs.NewMem(64 << 20)
	made(t, fs, model.NumberKey(1))
	d := &Desk{FS: fs}
	store := hex.EncodeToString([]byte(dir))
	open := map[string]any{"op": "open", "path": store, "view": 7}
	backup := map[string]any{"op": "backup", "path": store, "to": hex.EncodeToString([]byte("/copy")), "view": 7}
	ask(t, d, open)
	ask(t, d, backup) // the numbers of backups are separate
	files := fs.OpenFiles()
	for _, q := range []map[string]any{open, backup} {
		for _, number := range []uint64{7, 0} {
			q["view"], q["to"] = number, hex.EncodeToString([]byte("/other"))
			text, _ := json.Marshal(q)
			if _, err := d.Ask(text, nil, Room); !errors.Is(err, status.Of(status.Invalid)) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	if n := opened(d); n != 2 || fs.OpenFiles() != files {
		t.Error(n, fs.OpenFiles(), files)
	}
	for range 2 {
		for _, op := range []string{"close", "backup_close"} {
			ask(t, d, map[string]any{"op": op, "view": 7})
		}
	}
	if n := opened(d); n != 0 || fs.OpenFiles() != 0 {
		t.Error(n, fs.OpenFiles())
	}
}

func FuzzRequest(f *testing.F) {
	fs := vfs.NewMem(64 << 20)
	for _, op := range []string{"open", "close", "histories", "rows", "row", "blob", "lineage", "check", "step", "findings", "collect", "repair"} {
		f.Add([]byte(`{"op": "` + op + `", "path": "2f73746f7265", "view": 4294967296, "history": "68", "key": {"number": 1}, "what": "layout", "bins": 5}`))
	}
	once := &Desk{FS: fs}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := fs.Stat(dir); err != nil {
			made(t, fs, model.NumberKey(1))
			if _, err := once.Ask([]byte(`{"op": "open", "path": "2f73746f7265", "view": 4294967296}`), nil, Room); err != nil {
				t.Fatal(err)
			}
		}
		reply, err := once.Ask(text, nil, Room)
		var known *status.Error
		if err != nil && !errors.As(err, &known) || len(reply) > Room {
			t.Error(len(reply), err)
		}
	})
}
