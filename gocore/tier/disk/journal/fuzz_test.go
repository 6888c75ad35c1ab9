package journal

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"velocpy/gocore/base/allocs"
)

// FuzzRead reads files of valid frames with any content, and of arbitrary bytes. Read ends, takes little memory, and returns only records of frames. A
// second read finds the same, and a writer that continues keeps them.
func FuzzRead(f *testing.F) {
	f.Fuzz(func(t *testing.T, plan []byte, files uint8) {
		m := disk(t)
		o := options(m)
		total := 0
		var made []string
		for number := uint64(1); number <= uint64(files%4)+1; number++ {
			file, err := m.Create(o.path(number), false)
			must(t, err)
			p, records := forged(number, plan)
			total, made = total+len(p), append(made, records...)
			_, err = file.WriteAt(p, 0)
			must(t, err, file.Close())
			plan = plan[len(plan)/2:]
		}
		if total > 1<<20 {
			return
		}
		var got []string
		var state *State
		var err error
		read := func() {
			got = nil
			state, err = Read(o, func(record []byte) error {
				got = append(got, string(record))
				return nil
			})
		}
		most := 1<<20 + 40*uint64(total)
		if took := allocs.Least(most, read); took > most {
			t.Fatalf("%d bytes were allocated for files of %d", took, total)
		}
		if errors.Is(err, ErrVersion) {
			return
		}
		must(t, err)
		slices.Sort(made)
		for _, record := range got {
			if _, found := slices.BinarySearch(made, record); !found {
				t.Fatalf("%q was never written", record)
			}
		}
		if again, twice := found(t, o); !slices.Equal(again, got) || twice.Last != state.Last || len(twice.Damage) != len(state.Damage) {
			t.Fatalf("%+v, and then %+v", state, twice)
		}
		l := Open(o, state)
		if len(state.Damage) > 0 && state.Last < mostNumber { // the rest must be compacted first, as a store does
			must(t, l.Compact(func(give func(record []byte) error) error {
				for _, record := range got {
					if err := give([]byte(record)); err != nil {
						return err
					}
				}
				return nil
			}))
			got = slices.DeleteFunc(got, func(record string) bool { return record == "" }) // a snapshot has no empty ones
		}
		if err := l.Append([]byte("more"), nil); state.Last == mostNumber {
			if !errors.Is(err, ErrExhausted) {
				t.Fatal(err)
			}
			must(t, l.Close())
		} else {
			must(t, err, l.Close())
			all, after := found(t, o)
			if after.Last != state.Last+1 || !slices.Equal(all, append(got, "more")) {
				t.Fatalf("batch %d behind %d: %q behind %q", after.Last, state.Last, all, got)
			}
		}
		if n := m.OpenFiles(); n != 0 {
			t.Fatalf("%d files are still open", n)
		}
	})
}

// forged makes a file from a plan of four bytes per frame: kind, sequence, length and fault. It returns the possible records too.
func forged(number uint64, plan []byte) (p []byte, records []string) {
	for ; len(plan) >= 4; plan = plan[4:] {
		payload := make([]byte, plan[2])
		for i := range payload {
			payload[i] = plan[i%len(plan)]
		}
		wrong := plan[3]
		switch {
		case plan[0] == kindBegin && len(payload) == beginBytes:
			copy(payload, begin{behind: uint64(plan[1]), snapshot: wrong&1 == 1}.bytes())
		case wrong&16 != 0 && len(payload) >= 8: // records, of which the last may be longer than the rest
			binary.LittleEndian.PutUint32(payload, uint32(len(payload)/2-4))
			binary.LittleEndian.PutUint32(payload[len(payload)/2:], uint32((len(payload)+1)/2-4)+uint32(wrong>>7))
		}
		if ok, _ := eachRecord(payload, func(record []byte) error {
			records = append(records, string(record))
			return nil
		}); !ok && wrong&32 != 0 {
			payload = payload[:0]
		}
		start, owner := len(p), store
		if wrong&64 != 0 {
			owner[0]++
		}
		sequence := uint64(plan[1]) * uint64(wrong&1*0xff|1)
		p = appendFrame(p, place{owner, number, int64(start)}, uint32(plan[0]), sequence, payload)
		switch wrong >> 1 & 7 {
		case 1:
			p[start+len(payload)%headBytes] ^= 4
		case 2:
			p = p[:len(p)-len(p)%7]
		case 3:
			p = append(p, plan[:4]...)
		case 4:
			p[len(p)-1] ^= 1
		case 5: // numbers at which arithmetic overflows
			p = p[:start]
			p = appendFrame(p, place{owner, number, int64(start)}, uint32(plan[0]), uint64(1)<<(plan[1]%64)-uint64(plan[1]>>7), payload)
		case 6:
			p = append(p, make([]byte, grain)...)
		}
	}
	return p, records
}
