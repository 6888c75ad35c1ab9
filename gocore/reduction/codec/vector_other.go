//go:build !amd64 || race

package codec

// vectors is set where vector_amd64.s replaces loops.
var vectors = false

func differencesByVectors(*differences, []byte, int) bool { return false }

func planesByVectors(_, _, _ []byte, _ int) int { return 0 }

func wordsByVectors(_, _, _ []byte, _ uint64, _, _ int) bool { return false }
