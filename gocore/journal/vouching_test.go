package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"velocpy/gocore/vfs"
)

// data are files beside a log, one for each record that relies on one.
type data struct{ fs vfs.FS }

func (d data) name(record string) string {
	number, _, _ := strings.Cut(record, "-")
	return filepath.Join("/s", "of-"+number)
}

// write writes what a record relies on, and returns what brings it down.
func (d data) write(record string) (down func() error, err error) {
	file, err := d.fs.Create(d.name(record), false)
	if err != nil {
		return nil, err
	}
	if _, err = file.WriteAt([]byte(record), 0); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() error {
		err := file.Sync()
		if err == nil {
			err = d.fs.SyncDir("/s")
		}
		return errors.Join(err, file.Close())
	}, nil
}

func (d data) has(record string) (bool, error) {
	file, err := d.fs.Open(d.name(record), false, false)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	p := make([]byte, len(record)+1)
	n, _ := file.ReadAt(p, 0)
	return bytes.Equal(p[:n], []byte(record)), nil
}

// again brings down once more what a batch relies on that was found: nothing else than what is there is written.
func (d data) again(record string) error {
	file, err := d.fs.Open(d.name(record), true, false)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte(record), 0)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close(), d.fs.SyncDir("/s"))
}

func (d data) vouched(records [][]byte) (bool, error) {
	for _, record := range records {
		if ok, err := d.has(string(record)); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// A log goes through crash after crash, beside data that is synced while its batches are. What was acknowledged stays, with its data; so does what was found.
func TestModelOfVouching(t *testing.T) {
	alone, unproved := 0, 0 // batches that were found last, and those of which the data was not there
	rapid.Check(t, func(rt *rapid.T) {
		m := disk(t)
		var kept []string
		number := 0
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			rule := &vfs.Rule{
				Skip: rapid.Int64Range(0, 60).Draw(rt, "fault"), Err: unix.EIO, Ops: vfs.OpWrite | vfs.OpSync | vfs.OpSyncDir | vfs.OpOpen,
				Times: rapid.SampledFrom([]int64{0, 1, 2}).Draw(rt, "times"),
				Short: rapid.Bool().Draw(rt, "short"), ShortBytes: rapid.IntRange(0, 100).Draw(rt, "bytes"),
			}
			faulty := vfs.NewFaulty(m, rule)
			d := data{faulty}
			o := options(faulty)
			o.Vouched = d.vouched
			var failed []string
			var all []string
			state, err := Read(o, func(record []byte) error { all = append(all, string(record)); return nil })
			if err == nil && state.Vouched {
				err = d.again(all[len(all)-1])
			}
			if err == nil {
				l := Open(o, state)
				for range rapid.IntRange(0, 8).Draw(rt, "appends") {
					number++
					record := fmt.Sprint(number, strings.Repeat("-", rapid.IntRange(1, 3000).Draw(rt, "length")))
					down, err := d.write(record)
					if err != nil {
						continue
					}
					if rapid.Bool().Draw(rt, "beside") {
						err = l.AppendBeside([][]byte{[]byte(record)}, down)
					} else if err = down(); err == nil {
						err = l.Append([]byte(record), nil)
					}
					if err == nil {
						kept, failed = append(kept, record), nil
					} else {
						failed = append(failed, record)
					}
				}
				if rapid.Bool().Draw(rt, "close") {
					_ = l.Close()
				}
			}
			m = m.Crash(rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)), rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(rt, "keep"))
			after := options(m)
			after.Vouched = data{m}.vouched
			got, state := found(t, after)
			if harm(state) {
				rt.Fatalf("damaged: %v", state.Damage)
			}
			if len(got) < len(kept) || !slices.Equal(got[:len(kept)], kept) {
				rt.Fatalf("of %d acknowledged there are other %d", len(kept), len(got))
			}
			if len(got) > len(kept)+1 || len(got) > len(kept) && !slices.Contains(failed, got[len(kept)]) {
				rt.Fatalf("%d are there that nobody asked for lately", len(got)-len(kept))
			}
			for _, record := range got {
				if ok, err := (data{m}).has(record); !ok || err != nil {
					rt.Fatalf("the data of %.20q is not there: %v", record, err)
				}
			}
			if state.Vouched {
				alone++
			}
			if state.Unproved {
				unproved++
			}
			kept = got
		}
	})
	if alone == 0 || unproved == 0 {
		t.Errorf("%d batches were in doubt and proved, %d were not: the model shows nothing", alone, unproved)
	}
}
