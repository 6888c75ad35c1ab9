//go:build race

package kernel

// underRace skips what compares the twins with a program: that runs in a process of its own, and the comparison in one goroutine.
const underRace = true
