//go:build race

package journal

// share: of what one goroutine searches through, every eleventh case runs. The race detector has nothing to find there, and slows it down.
const share = 11
