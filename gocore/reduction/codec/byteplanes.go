package codec

import "encoding/binary"

// Bytes of every second, and of every fourth place in 8 bytes.
const (
	second = 0x00ff00ff00ff00ff
	fourth = 0x000000ff000000ff
)

// split writes the byte planes of words to planes: byte 0 of all words, then byte 1, and so on. What is left behind the last word follows. Of words of one byte it
// returns the plain bytes.
func split(planes, plain []byte, word int) []byte {
	n := len(plain) / word
	done := len(plain) / 8 * 8 / word // words that are split 8 bytes at a time
	switch word {
	case 1:
		return plain
	case 2:
		low, high := planes[:n], planes[n:2*n]
		for i := 0; i < done; i += 4 {
			x := binary.LittleEndian.Uint64(plain[2*i:])
			binary.LittleEndian.PutUint32(low[i:], everySecond(x))
			binary.LittleEndian.PutUint32(high[i:], everySecond(x>>8))
		}
	case 4:
		a, b, c, d := planes[:n], planes[n:2*n], planes[2*n:3*n], planes[3*n:4*n]
		for i := 0; i < done; i += 2 {
			x := binary.LittleEndian.Uint64(plain[4*i:])
			binary.LittleEndian.PutUint16(a[i:], everyFourth(x))
			binary.LittleEndian.PutUint16(b[i:], everyFourth(x>>8))
			binary.LittleEndian.PutUint16(c[i:], everyFourth(x>>16))
			binary.LittleEndian.PutUint16(d[i:], everyFourth(x>>24))
		}
	default:
		for i := range done {
			x := binary.LittleEndian.Uint64(plain[8*i:])
			for j := range 8 {
				planes[j*n+i] = byte(x >> (8 * j))
			}
		}
	}
	for i := done; i < n; i++ {
		for j := range word {
			planes[j*n+i] = plain[i*word+j]
		}
	}
	copy(planes[n*word:], plain[n*word:])
	return planes
}

// join is the reverse of split. Words of one byte were decoded in place.
func join(plain, planes []byte, word int) {
	n := len(plain) / word
	done := len(plain) / 8 * 8 / word
	switch word {
	case 1:
		return
	case 2:
		low, high := planes[:n], planes[n:2*n]
		for i := 0; i < done; i += 4 {
			x := toSecond(binary.LittleEndian.Uint32(low[i:])) | toSecond(binary.LittleEndian.Uint32(high[i:]))<<8
			binary.LittleEndian.PutUint64(plain[2*i:], x)
		}
	case 4:
		a, b, c, d := planes[:n], planes[n:2*n], planes[2*n:3*n], planes[3*n:4*n]
		for i := 0; i < done; i += 2 {
			x := toFourth(binary.LittleEndian.Uint16(a[i:])) | toFourth(binary.LittleEndian.Uint16(b[i:]))<<8 |
				toFourth(binary.LittleEndian.Uint16(c[i:]))<<16 | toFourth(binary.LittleEndian.Uint16(d[i:]))<<24
			binary.LittleEndian.PutUint64(plain[4*i:], x)
		}
	default:
		for i := range done {
			x := uint64(0)
			for j := range 8 {
				x |= uint64(planes[j*n+i]) << (8 * j)
			}
			binary.LittleEndian.PutUint64(plain[8*i:], x)
		}
	}
	for i := done; i < n; i++ {
		for j := range word {
			plain[i*word+j] = planes[j*n+i]
		}
	}
	copy(plain[n*word:], planes[n*word:])
}

// everySecond brings bytes 0, 2, 4 and 6 together.
func everySecond(x uint64) uint32 {
	x &= second
	x = (x | x>>8) & 0x0000ffff0000ffff
	return uint32(x | x>>16)
}

func toSecond(p uint32) uint64 {
	x := uint64(p)
	x = (x | x<<16) & 0x0000ffff0000ffff
	return (x | x<<8) & second
}

// everyFourth brings bytes 0 and 4 together.
func everyFourth(x uint64) uint16 {
	x &= fourth
	return uint16(x | x>>24)
}

func toFourth(p uint16) uint64 {
	x := uint64(p)
	return (x | x<<24) & fourth
}
