//go:build race

package object

const raceDetector = true
