package store

import (
	"runtime"
	"sync"
	"time"
)

// lock is the store's mutex. A goroutine that was entered from C and sleeps for a mutex costs its thread two hand-overs between threads of the
// runtime: beside an H200 50 to 200 µs, where the mutex is held for microseconds. Lock therefore looks again for spinFor before it sleeps.
type lock struct{ sync.Mutex }

// spinFor is several times as long as most sections hold the mutex.
const spinFor = 30 * time.Microsecond

// Lock takes the mutex.
func (l *lock) Lock() {
	if l.TryLock() || runtime.NumCPU() > 1 && l.spin() {
		return
	}
	l.Mutex.Lock()
}

// spin takes the mutex if it comes free soon.
func (l *lock) spin() (taken bool) {
	for began := time.Now(); !taken && time.Since(began) < spinFor; {
		taken = l.TryLock()
	}
	return taken
}
