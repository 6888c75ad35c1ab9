//go:build !amd64 || race

package codec

// vectors is set where assembly replaces loops.
var vectors = false

// vectors256 is set where assembly for AVX2 decodes.
var vectors256 = false

func differencesByVectors(*differences, []byte, int) bool { return false }

func stepsByVectors(*widths) bool { return false }

func planesByVectors(dst, _, _ []byte, _ int) (blocks, behind int) { return 0, len(dst) }

func wordsByVectors(_, _, _, _ []byte, _ uint64, _, _ int) bool { return false }

func writeExpByVectors([]byte, *codes, *float, *view) bool { return false }

func readExpByVectors([]byte, *codes, *float, *view) (done, ok bool) { return false, false }

func bytePlanesByVectors(_, _, _ []byte, _ int) bool { return false }

func uniteByVectors(_, _, _ []byte, _ int) bool { return false }

func markByVectors(_, _ []byte) (units, count int) { return 0, 0 }

func compressByVectors(_, _, _ []byte) (units, count int) { return 0, 0 }

func expandByVectors(_, _, _ []byte) (units, count int) { return 0, 0 }

func combineByVectors(_, _, _ []byte, _ int, _ bool) int { return 0 }

func (h *histogram) takeByVectors(*float, *view) bool { return false }
