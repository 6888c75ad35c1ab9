package host

import (
	"testing"

	"velocpy/gocore/base/memory"
)

// Pages ahead of the captures are prefaulted by way of near, all of them.
func TestPrefaultingIsNearItsDevice(t *testing.T) {
	m, err := memory.Map("test", 3*prefaultPiece)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Unmap() }()
	pieces := 0
	p := prefaulter{near: func(work func()) {
		pieces++
		work()
	}}
	p.reached.Store(m.Size())
	for p.some(m.Size(), m.Populate) {
	}
	if pieces != 3 {
		t.Errorf("%d of 3 pieces are prefaulted there", pieces)
	}
}

// A tier that waits prefaults nothing until the first byte is in use.
func TestPrefaultingThatWaits(t *testing.T) {
	m, err := memory.Map("test", 2*prefaultFirst)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = m.Unmap() }()
	r := resizer{state: &state{o: Options{Now: func() int64 { return 0 }}, mapping: m, chunks: newChunks(m.Size())}}
	r.prefaulter.near = func(work func()) { work() }
	r.prefaulter.active.Store(true)
	p := &r.prefaulter
	if p.wait(); p.isBehind(0) || !p.resting.Load() {
		t.Error("it does not wait")
	}
	if !p.isBehind(1) || p.resting.Load() {
		t.Error("it waits for ever")
	}
	if p.isBehind(2) {
		t.Error("it begins anew with each byte")
	}
}
