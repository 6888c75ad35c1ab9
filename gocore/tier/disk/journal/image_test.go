package journal

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velocpy/gocore/base/vfs"
)

// TestImagesAreALog: files that were made without a log are read as one, whose records are those of the snapshot and of the batches behind it.
func TestImagesAreALog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem, store := vfs.NewMem(1<<30), [16]byte{1, 2}
		record := rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 3000), func(p []byte) string { return string(p) })
		var want []string
		put := func(number uint64, p []byte, err error) {
			if err != nil {
				t.Fatal(err)
			}
			file, err := mem.Create("/"+FileName(number), false)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteAt(p, 0); err != nil {
				t.Fatal(err)
			}
		}
		number := uint64(1)
		if rapid.Bool().Draw(t, "snapshot") {
			number = rapid.Uint64Range(1, 1<<40).Draw(t, "number")
			want = rapid.SliceOf(record).Draw(t, "records of the snapshot")
			p, err := SnapshotFile(store, number, func(give func([]byte) error) error {
				for _, one := range want {
					if err := give([]byte(one)); err != nil {
						return err
					}
				}
				return nil
			})
			put(number, p, err)
			number++
		}
		for range rapid.IntRange(0, 5).Draw(t, "batches") {
			some := rapid.SliceOf(record).Draw(t, "records")
			var records [][]byte
			for _, one := range some {
				records = append(records, []byte(one))
			}
			p, err := BatchFile(store, number, records)
			put(number, p, err)
			want = append(want, some...)
			number++
		}
		var got []string
		state, err := Read(Options{FS: mem, Dir: "/", Store: store}, func(record []byte) error {
			if len(record) > 0 {
				got = append(got, string(record))
			}
			return nil
		})
		if err != nil || len(state.Damage) > 0 || state.Torn > 0 || !slices.Equal(got, want) {
			t.Fatalf("%d records of %d came back: %v, %+v", len(got), len(want), err, state)
		}
		if number > 1 && (!state.Closed || state.Last != number-1 || fmt.Sprint(state.Shadowed) == "true") {
			t.Fatalf("%+v behind batch %d", state, number-1)
		}
	})
}
