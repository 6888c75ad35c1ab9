package engine

import (
	"testing"

	"velocpy/gocore/model"
	"velocpy/gocore/policy/plan"
)

// prove begins a proof, if there is any to begin: of a copy that is not moving, has no reader and is not verified.
func (w *world) prove() bool {
	p, some := w.e.BeginVerification(w.now)
	w.observe()
	if !some {
		if w.e.HasUnverified() {
			w.fatalf("there was nothing to prove, and there is again")
		}
		return false
	}
	f := w.e.row(p.Obj, p.Tier)
	if f.Verified || f.Pins > 0 || p.Obj.gone || p.Tier != p.Rec.Top() || !w.e.IsMemory(p.Tier) || w.cfg.VerifyFrom == 0 || p.Obj.Bytes(p.Tier) < w.cfg.VerifyFrom {
		w.fatalf("a proof of %v in tier %d: %+v", p.Rec.Key, p.Tier, f)
	}
	w.read("proof", p.Tier, f.Offset, p.Obj)
	w.proofs = append(w.proofs, p)
	return true
}

// proved ends proof number i, whose bytes must not have moved meanwhile.
func (w *world) proved(i int, right bool) {
	p := w.proofs[i]
	w.proofs = append(w.proofs[:i], w.proofs[i+1:]...)
	f := w.e.row(p.Obj, p.Tier)
	w.read("end of a proof", p.Tier, f.Offset, p.Obj)
	want := f.Verified || right && p.Obj.verifying
	gone := p.Obj.gone
	w.e.EndVerification(w.now, p, right)
	if !gone && w.e.complete(p.Obj, p.Tier) && w.e.row(p.Obj, p.Tier).Verified != want {
		w.fatalf("%v in tier %d: proved %v", p.Rec.Key, p.Tier, !want)
	}
}

// doubt revokes the result of a proof under way.
func (w *world) doubt(p Verification) {
	w.e.MarkUnverified(p.Rec, p.Tier)
	if w.e.row(p.Obj, p.Tier).Verified {
		w.fatalf("%v is in doubt, and verified", p.Rec.Key)
	}
}

// someCaptured is an engine with one tier and checkpoints of a size, hinted in descending order.
func someCaptured(t *testing.T, n int, size int64) (*Engine, *History) {
	t.Helper()
	e := New(Config{Prefetch: true, VerifyFrom: 1 << 20, Tiers: []TierConfig{{Name: "host", Capacity: int64(n) * size}}})
	h := e.History("h")
	for i := range n {
		c, err := e.BeginCapture(0, h, model.NumberKey(int64(i)), size, 1, nil, CaptureOptions{})
		if err != nil {
			t.Fatal(err)
		}
		e.EndCapture(0, c, true)
	}
	var hints []plan.Hint
	for i := range n {
		hints = append(hints, plan.Hint{Key: model.NumberKey(int64(n - 1 - i))})
	}
	e.Hint(0, h, hints)
	return e, h
}

// Only the bytes of leases are verified ahead, in the order of the plan and no further than the reach.
func TestProofsGoAheadOfLeases(t *testing.T) {
	const n, size = 200, 1 << 20
	const reach = verifyBytes / size
	e, h := someCaptured(t, n, size)
	restore := func(i int, o RestoreOptions) {
		t.Helper()
		r, err := e.BeginRestore(0, h, model.NumberKey(int64(i)), o)
		if err != nil {
			t.Fatal(err)
		}
		e.EndRestore(0, r)
	}
	prove := func() (keys []int64) {
		for p, some := e.BeginVerification(0); some; p, some = e.BeginVerification(0) {
			keys = append(keys, p.Rec.Key.Number)
			e.EndVerification(0, p, true)
		}
		return keys
	}
	if e.HasUnverified() || len(prove()) > 0 {
		t.Fatal("there are proofs before the first restore")
	}
	restore(n-1, RestoreOptions{Into: true})
	if e.HasUnverified() || len(prove()) > 0 {
		t.Fatal("there are proofs for restores that copy")
	}
	restore(n-2, RestoreOptions{})
	if !e.HasUnverified() {
		t.Fatal("nothing is to be proved for leases")
	}
	keys := prove()
	if len(keys) != reach || keys[0] != n-3 || keys[reach-1] != n-2-reach {
		t.Fatalf("proved: %v", keys)
	}
	for i := range reach/2 - 1 {
		restore(n-3-i, RestoreOptions{})
	}
	if e.HasUnverified() {
		t.Fatal("the prover is woken for every restore")
	}
	restore(n-2-reach/2, RestoreOptions{})
	if !e.HasUnverified() {
		t.Fatal("the prover is not woken when half of its reach is used up")
	}
	if keys := prove(); len(keys) != reach/2 {
		t.Fatalf("proved: %v", keys)
	}
}

// Whatever the size, the next two are verified. A restore verifies a doubted copy itself.
func TestProofsOfLargeCheckpoints(t *testing.T) {
	e, h := someCaptured(t, 5, 1<<30)
	r, err := e.BeginRestore(0, h, model.NumberKey(4), RestoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first, _ := e.BeginVerification(0)
	second, some := e.BeginVerification(0)
	if _, more := e.BeginVerification(0); more || !some || first.Rec.Key != model.NumberKey(3) || second.Rec.Key != model.NumberKey(2) {
		t.Fatalf("%+v, %+v, %v", first, second, more)
	}
	e.MarkUnverified(second.Rec, 0)
	e.EndVerification(0, first, true)
	e.EndVerification(0, second, true)
	if !e.Fragment(first.Rec, 0).Verified || e.Fragment(second.Rec, 0).Verified {
		t.Fatal("what was proved is not verified, or what is in doubt is")
	}
	e.EndRestore(0, r)
}

// Small copies are verified by their restore.
func TestSmallCheckpointsAreNotProved(t *testing.T) {
	e, h := someCaptured(t, 5, 1<<19)
	r, err := e.BeginRestore(0, h, model.NumberKey(4), RestoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, some := e.BeginVerification(0); some || e.HasUnverified() {
		t.Fatal("there is something to prove")
	}
	e.EndRestore(0, r)
}
