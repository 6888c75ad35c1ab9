//go:build !race

package durable

const underRace = false
