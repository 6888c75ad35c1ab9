//go:build race

package copier

// raceEnabled: sync.Pool then drops objects at random.
const raceEnabled = true
