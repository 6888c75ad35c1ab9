//go:build race

package copier

// raceEnabled: sync.Pool drops objects at random then.
const raceEnabled = true
