//go:build !race

package devicetest

const underRace = false
