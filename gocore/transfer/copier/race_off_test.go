//go:build !race

package copier

const raceEnabled = false
