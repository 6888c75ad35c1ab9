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
