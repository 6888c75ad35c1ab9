//go:build race

package sim

// underRace: what is played here is a single thread, slowed down for nothing.
const underRace = true
