package codec

import (
	"encoding/binary"
	"errors"

	"github.com/zeebo/xxh3"
)

// A second reader, written from docs/reduction-format.md alone, bit by bit, with nothing of the package but the names of the modes. It trusts its input.

var errSlow = errors.New("the slow reader found a wrong hash")

type slow struct {
	p    []byte
	size int // bytes of a word
	exp  int // bits of the exponent
}

func (s *slow) take(n int) []byte {
	q := s.p[:n]
	s.p = s.p[n:]
	return q
}

func number(p []byte) (x uint64) {
	for i, b := range p {
		x |= uint64(b) << (8 * i)
	}
	return x
}

func slowDecode(container, reference []byte) (plain []byte, err error) {
	size, exp := int(container[20]), int(container[21])
	length, chunks := int(number(container[24:32])), int(number(container[32:40]))
	at := (64 + 11*chunks + 15) / 16 * 16
	if xxh3.Hash(container[16:at]) != number(container[8:16]) {
		return nil, errSlow
	}
	for i := range chunks {
		hash := number(container[64+8*i:][:8])
		n := int(number(container[64+8*chunks+2*i:][:2]))
		mode := Mode(container[64+10*chunks+i])
		m := min(16384, length-i*16384)
		var former []byte
		if reference != nil {
			former = reference[i*16384 : i*16384+m]
		}
		s := slow{container[at : at+n : at+n], size, exp}
		chunk := s.chunk(mode, m, former)
		if xxh3.Hash(chunk) != hash || len(s.p) != 0 {
			return nil, errSlow
		}
		plain = append(plain, chunk...)
		at += (n + 15) / 16 * 16
	}
	return plain, nil
}

func (s *slow) chunk(mode Mode, length int, reference []byte) (plain []byte) {
	n := length / s.size
	tail := s.p[len(s.p)-length%s.size:]
	s.p = s.p[:len(s.p)-len(tail)]
	words := make([]uint64, n)
	switch mode {
	case Raw:
		for i := range words {
			words[i] = number(s.take(s.size))
		}
	case Const:
		x := number(s.take(s.size))
		for i := range words {
			words[i] = x
		}
	case Diff:
		words = s.differences(n)
	case Exp:
		words = s.exponents(n)
	case Xrz:
		if number(s.take(8)) != xxh3.Hash(reference)&0xffffffff {
			return nil
		}
		words = s.planes(n)
		for i := range words {
			words[i] ^= number(reference[i*s.size:][:s.size])
		}
	case Step:
		if number(s.take(8)) != xxh3.Hash(reference)&0xffffffff {
			return nil
		}
		words = s.differences(n)
		for i := range words {
			words[i] += number(reference[i*s.size:][:s.size])
		}
	}
	for _, x := range words {
		plain = append(plain, binary.LittleEndian.AppendUint64(nil, x)[:s.size]...)
	}
	return append(plain, tail...)
}

func (s *slow) sparse(n int) []byte {
	if n == 0 {
		return nil
	}
	lengths := []int{n, (n + 7) / 8, (n + 63) / 64}
	bitmap := s.take((n + 511) / 512)
	for level := 2; level >= 0; level-- {
		list := make([]byte, lengths[level])
		for i := range list {
			if bitmap[i/8]>>(i%8)&1 != 0 {
				list[i] = s.take(1)[0]
			}
		}
		bitmap = list
	}
	return bitmap
}

func (s *slow) widths(blocks int) []byte {
	groups := (blocks + 31) / 32
	heads := s.take((groups + 3) / 4 * 4)
	var list []byte
	last := 0
	for g := range groups {
		planes := s.take(4 * int(heads[g]))
		for i := range min(32, blocks-32*g) {
			z := 0
			for b := range int(heads[g]) {
				z |= int(number(planes[4*b:][:4])>>i&1) << b
			}
			if z%2 != 0 {
				last -= z/2 + 1
			} else {
				last += z / 2
			}
			list = append(list, byte(last))
		}
	}
	return list
}

func (s *slow) differences(n int) []uint64 {
	base := number(s.take(max(4, s.size)))
	order := number(s.take(4))
	block := 8
	if s.size <= 2 {
		block = 32
	}
	widths := s.widths((n + block - 1) / block)
	words := make([]uint64, n)
	change := uint64(0)
	for g, width := range widths {
		planes := s.take(block / 8 * int(width))
		for i := block * g; i < min(n, block*g+block); i++ {
			z := uint64(0)
			for b := range int(width) {
				z |= number(planes[block/8*b:][:block/8]) >> (i % block) & 1 << b
			}
			if order == 1 {
				change = 0
			}
			if z&1 != 0 {
				change -= z/2 + 1
			} else {
				change += z / 2
			}
			base += change
			words[i] = base
		}
	}
	return words
}

func (s *slow) exponents(n int) []uint64 {
	base, k := number(s.take(2)), int(number(s.take(2)))
	groups := (n + 31) / 32
	rest := map[int]int{5: 3, 8: 0, 11: 5}[s.exp]
	planes := s.take(4 * groups * (k + rest))
	arrays := []int{}
	switch s.size {
	case 2:
		arrays = []int{1}
	case 4:
		arrays = []int{2, 1}
	case 8:
		arrays = []int{4, 2}
	}
	bit := func(i, b int) uint64 { return number(planes[4*((i/32)*(k+rest)+b):][:4]) >> (i % 32) & 1 }
	significands := make([]uint64, n)
	low := 0
	for _, bytes := range arrays {
		array := s.take(32 * groups * bytes)
		for i := range significands {
			significands[i] |= number(array[i*bytes:][:bytes]) << low
		}
		low += 8 * bytes
	}
	mantissa := 8*s.size - 1 - s.exp
	words := make([]uint64, n)
	for i := range words {
		for b := range rest {
			significands[i] |= bit(i, k+b) << (low + b)
		}
		code := uint64(0)
		for b := range k {
			code |= bit(i, b) << b
		}
		e := base + code
		if code == 1<<k-1 {
			e = number(s.take((s.exp + 7) / 8))
		}
		sign := significands[i] >> mantissa
		words[i] = sign<<(8*s.size-1) | e<<mantissa | significands[i]&(1<<mantissa-1)
	}
	return words
}

func (s *slow) planes(n int) []uint64 {
	forms := number(s.take(4))
	words := make([]uint64, n)
	for j := range s.size {
		plane := make([]byte, n)
		switch forms >> (2 * j) & 3 {
		case 1:
			plane = s.take(n)
		case 2:
			plane = s.sparse(n)
		}
		for i, b := range plane {
			words[i] |= uint64(b) << (8 * j)
		}
	}
	return words
}
