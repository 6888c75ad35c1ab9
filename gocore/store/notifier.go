package store

import (
	"sync"

	"golang.org/x/sys/unix"
)

// notifier is the eventfd of an operation's caller. Anybody may ring it until it is muted, which happens when the operation ends:
// afterwards the number may be the descriptor of something else. It has a lock of its own, so that it can be muted whatever has become
// of the store's.
type notifier struct {
	mu sync.Mutex
	fd int32 // negative: muted
}

func (b *notifier) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fd < 0 {
		return
	}
	one := [8]byte{1}
	_, _ = unix.Write(int(b.fd), one[:]) // only a full counter can refuse, and then the caller is awake
}

// disable returns when nobody writes to the descriptor, now or later.
func (b *notifier) disable() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fd = -1
}
