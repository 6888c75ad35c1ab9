//go:build race

package sim

// underRace skips the grid: it runs in a single thread, which the race detector would slow down without a benefit.
const underRace = true
