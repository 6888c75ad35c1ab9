//go:build race

package devicetest

// underRace tells that the race detector is on, with which work takes ten times as long.
const underRace = true
