package durable

import (
	"testing"
	"time"

	"velocpy/gocore/base/vfs"
	"velocpy/gocore/model"
)

// lacks is the number of rows that the indexes of a store lack, by the present state of the medium.
func (s *site) lacks() (n int) {
	s.t.Helper()
	v, err := Read(s.o)
	if err != nil {
		s.t.Fatal(err)
	}
	for number, serials := range v.versions(1 << 62) {
		lacking, err := v.unindexed(v.data, number, serials)
		if err != nil {
			s.t.Fatal(err)
		}
		n += lacking
	}
	if err := v.Close(); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// Index entries of small checkpoints are deferred for a short time: until enough entries or bytes accumulate, no commit comes for a moment, or the store is
// closed.
func TestWhatIsPutOffIsSaid(t *testing.T) {
	t.Run("with commit areas", func(t *testing.T) { whatIsPutOffIsSaid(t, madeWhole) })
	t.Run("without", func(t *testing.T) { whatIsPutOffIsSaid(t, madeIndexed) })
}

func whatIsPutOffIsSaid(t *testing.T, made made) {
	s := &site{t: t, fs: vfs.NewMem(200 << 20)}
	s.o = Options{FS: s.fs, Dir: dir, Capacity: 100 << 20, SegmentBytes: 4 << 20, Direct: true, made: made, idle: 5 * time.Second}
	s.open()
	most := 0
	for key := range int64(3*putOffRows + 5) {
		s.put("a", model.NumberKey(key), 1000)
		most = max(most, s.lacks())
	}
	if most == 0 || most >= putOffRows {
		t.Errorf("up to %d are put off", most)
	}
	if sum := s.check(Scope{}); len(sum.Faults) > 0 {
		t.Error("what is put off is taken for a fault: ", sum.Faults)
	}
	for deadline := time.Now().Add(time.Minute); s.lacks() > 0 && time.Now().Before(deadline); {
		time.Sleep(idleDelay / 10)
	}
	if n := s.lacks(); n > 0 {
		t.Errorf("%d are never said", n)
	}
	s.put("b", model.NumberKey(1), putOffBytes)
	if n := s.lacks(); n > 0 {
		t.Errorf("%d are put off behind a large one", n)
	}
	s.put("b", model.NumberKey(2), 10)
	s.close()
	if n := s.lacks(); n > 0 {
		t.Errorf("%d are not said by a store that is closed", n)
	}
	s.sound()
}

// killed returns the disk of a writer that died with deferred entries.
func killed(t *testing.T) *site {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		s := newSite(t)
		for key := range int64(10) {
			s.put("a", model.NumberKey(key), 1000)
		}
		left := s.copied()
		s.close()
		if left.lacks() > 0 { // otherwise the machine was so slow that the writer became idle
			return left
		}
	}
	t.Fatal("nothing is ever put off")
	return nil
}

// The next writer adds the entries that a writer that died had deferred.
func TestWhatADeadWriterHasPutOff(t *testing.T) {
	h := killed(t)
	want := h.rows()
	h.open()
	if n := h.lacks(); n > 0 {
		t.Errorf("%d are not said", n)
	}
	h.close()
	h.withoutCatalog()
	h.rebuild()
	h.has(want, false)
}
