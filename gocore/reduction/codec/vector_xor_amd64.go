//go:build !race

package codec

import "unsafe"

//go:noescape
func xorPlanes8(planes, x, y unsafe.Pointer, bytes int)

//go:noescape
func xorPlanes16(planes, x, y unsafe.Pointer, bytes int)

//go:noescape
func xorPlanes32(planes, x, y unsafe.Pointer, bytes int)

//go:noescape
func xorPlanes64(planes, x, y unsafe.Pointer, bytes int)

//go:noescape
func xorWords16(x, planes, y unsafe.Pointer, bytes int)

//go:noescape
func xorWords32(x, planes, y unsafe.Pointer, bytes int)

//go:noescape
func xorWords64(x, planes, y unsafe.Pointer, bytes int)

//go:noescape
func marks64(bitmap, p unsafe.Pointer, units int) (count int)

//go:noescape
func compress64(dst, p, bitmap unsafe.Pointer, units int) (count int)

//go:noescape
func expand64s(p, src, bitmap unsafe.Pointer, units, left int) (count int)

//go:noescape
func add8(dst, a, b unsafe.Pointer, bytes int)

//go:noescape
func add16(dst, a, b unsafe.Pointer, bytes int)

//go:noescape
func add32(dst, a, b unsafe.Pointer, bytes int)

//go:noescape
func add64(dst, a, b unsafe.Pointer, bytes int)

//go:noescape
func subtract8(dst, a, b unsafe.Pointer, bytes int)

//go:noescape
func subtract16(dst, a, b unsafe.Pointer, bytes int)

//go:noescape
func subtract32(dst, a, b unsafe.Pointer, bytes int)

//go:noescape
func subtract64(dst, a, b unsafe.Pointer, bytes int)

// bytePlanesByVectors writes the byte planes of x XOR y, whose stride is that of whole words. It returns false, and does nothing, if it cannot.
func bytePlanesByVectors(planes, x, y []byte, size int) bool {
	if !vectors || len(x) == 0 || len(x)%vectorBytes != 0 || len(planes) < len(x) || len(y) < len(x) {
		return false
	}
	do := xorPlanes64
	switch size {
	case 1:
		do = xorPlanes8
	case 2:
		do = xorPlanes16
	case 4:
		do = xorPlanes32
	}
	do(begin(planes), begin(x), begin(y), len(x))
	return true
}

// uniteByVectors writes the words of byte planes XOR y. It returns false, and does nothing, if it cannot.
func uniteByVectors(x, planes, y []byte, size int) bool {
	if !vectors {
		return uniteBy256(x, planes, y, size)
	}
	if len(x) == 0 || len(x)%vectorBytes != 0 || len(planes) < len(x) || len(y) < len(x) {
		return false
	}
	do := xorWords64
	switch size {
	case 1:
		do = xorPlanes8
	case 2:
		do = xorWords16
	case 4:
		do = xorWords32
	}
	do(begin(x), begin(planes), begin(y), len(x))
	return true
}

// markByVectors does what mark does for the first units of 64 bytes, as many as it can, and returns their number.
func markByVectors(bitmap, p []byte) (units, count int) {
	if units = len(p) / vectorBytes; !vectors || units == 0 {
		return 0, 0
	}
	return units, marks64(begin(bitmap[:8*units]), begin(p), units)
}

// compressByVectors does what compress does for the first units of 64 bytes, as many as it can, and returns their number, and that of the bytes written.
// dst has space for all marked bytes.
func compressByVectors(dst, p, bitmap []byte) (units, count int) {
	if units = min(len(p)/vectorBytes, len(bitmap)/8); !vectors || units == 0 {
		return 0, 0
	}
	return units, compress64(begin(dst), begin(p), begin(bitmap), units)
}

// expandByVectors does what expand does for the first units of 64 bytes, as many as it can. It returns their number, and that of the bytes that it took
// from src; below 0 if src is too short.
func expandByVectors(p, src, bitmap []byte) (units, count int) {
	if !vectors {
		return expandBy256(p, src, bitmap)
	}
	if units = min(len(p)/vectorBytes, len(bitmap)/8); units == 0 {
		return 0, 0
	}
	return units, expand64s(begin(p), begin(src), begin(bitmap), units, len(src))
}

// combineByVectors adds b to a, or subtracts it, in the whole registers that there are, and returns their bytes.
func combineByVectors(dst, a, b []byte, size int, minus bool) int {
	n := min(len(dst), len(a), len(b)) / vectorBytes * vectorBytes
	if !vectors || n == 0 {
		return 0
	}
	do := add64
	switch {
	case minus && size == 1:
		do = subtract8
	case minus && size == 2:
		do = subtract16
	case minus && size == 4:
		do = subtract32
	case minus:
		do = subtract64
	case size == 1:
		do = add8
	case size == 2:
		do = add16
	case size == 4:
		do = add32
	}
	do(begin(dst), begin(a), begin(b), n)
	return n
}
