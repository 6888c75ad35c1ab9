//go:build race

package durable

// underRace: only a tenth of the cases runs, as each step takes ten times as long.
const underRace = true
