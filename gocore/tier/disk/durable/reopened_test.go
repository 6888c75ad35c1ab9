package durable

import (
	"testing"

	"velocpy/gocore/model"
)

// A process may open a store for each of its steps: the files of the log do not accumulate, and none of them is missing in between.
func TestAStoreThatIsOpenedOftenHasFewFiles(t *testing.T) {
	s := newSite(t)
	most := 0
	for i := range int64(5 * mostFiles) {
		s.put("a", model.NumberKey(i), 4096)
		s.close()
		files := len(s.names("catalog-"))
		most = max(most, files)
		s.open()
	}
	if most > mostFiles+1 || most < mostFiles/2 {
		t.Errorf("%d files of the log at the most; the limit is %d", most, mostFiles)
	}
	s.close()
	if sum := s.check(Scope{Data: true}); sum.Checkpoints != 5*mostFiles || len(sum.Faults) > 0 {
		t.Errorf("%d checkpoints, faults %v", sum.Checkpoints, sum.Faults)
	}
	s.open()
	s.close()
}
