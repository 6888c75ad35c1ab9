package operation

import (
	"sync"

	"golang.org/x/sys/unix"
)

// notifier wakes an operation's caller through its eventfd. Any goroutine may call notify until the operation ends, which disables the notifier.
// Afterwards the descriptor's number may belong to another file. The notifier has a lock of its own, so that it can be disabled even if a panic left
// the store's lock held.
type notifier struct {
	mu sync.Mutex
	fd int32 // negative: disabled
}

func (b *notifier) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fd < 0 {
		return
	}
	one := [8]byte{1}
	_, _ = unix.Write(int(b.fd), one[:]) // only a full counter makes it fail, and then the caller is awake
}

// disable stops notify. When it returns, no goroutine writes to the descriptor, now or later.
func (b *notifier) disable() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fd = -1
}
