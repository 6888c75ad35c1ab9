//go:build race

package durable

// underRace: a tenth is played, as each step takes ten times as long.
const underRace = true
