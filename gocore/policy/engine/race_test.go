//go:build race

package engine

// rounds: the random models run once. They run in one goroutine, where the race detector has nothing to find, and slows them down.
func rounds(int) int { return 1 }
