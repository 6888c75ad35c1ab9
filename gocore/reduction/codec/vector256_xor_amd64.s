//go:build !race

#include "textflag.h"

// Decoding of mode Xrz with AVX2: byte planes to words, and sparse bytes.

// PAIR XORs 32 bytes at two places of the reference with the low halves of A and B, and with their high halves, and writes them to the same places of
// the words. B has the 16 bytes behind those of A. T is lost.
#define PAIR(A, B, T, LOW, HIGH) \
	VPERM2I128 $0x20, B, A, T       \
	VPXOR      LOW(DX), T, T        \
	VMOVDQU    T, LOW(DI)           \
	VPERM2I128 $0x31, B, A, T       \
	VPXOR      HIGH(DX), T, T       \
	VMOVDQU    T, HIGH(DI)

// PLANES loads the arguments of a function that unites planes. R8 becomes the distance of two planes of words of 1 << N bytes.
#define PLANES(N) \
	MOVQ x+0(FP), DI                \
	MOVQ planes+8(FP), SI           \
	MOVQ y+16(FP), DX               \
	MOVQ bytes+24(FP), CX           \
	MOVQ CX, R8                     \
	SHRQ $N, R8

// func uniteWords2(x, planes, y unsafe.Pointer, bytes int)
TEXT ·uniteWords2(SB), NOSPLIT, $0-32
	PLANES(1)

loop:
	VMOVDQU    (SI), Y0
	VMOVDQU    (SI)(R8*1), Y1
	VPUNPCKLBW Y1, Y0, Y2
	VPUNPCKHBW Y1, Y0, Y3
	PAIR(Y2, Y3, Y0, 0, 32)
	ADDQ       $32, SI
	ADDQ       $64, DX
	ADDQ       $64, DI
	SUBQ       $64, CX
	JNZ        loop
	VZEROUPPER
	RET

// func uniteWords4(x, planes, y unsafe.Pointer, bytes int)
TEXT ·uniteWords4(SB), NOSPLIT, $0-32
	PLANES(2)
	LEAQ (R8)(R8*2), R9

loop:
	VMOVDQU    (SI), Y0
	VMOVDQU    (SI)(R8*1), Y1
	VMOVDQU    (SI)(R8*2), Y2
	VMOVDQU    (SI)(R9*1), Y3
	VPUNPCKLBW Y1, Y0, Y4
	VPUNPCKHBW Y1, Y0, Y5
	VPUNPCKLBW Y3, Y2, Y6
	VPUNPCKHBW Y3, Y2, Y7
	VPUNPCKLWD Y6, Y4, Y0
	VPUNPCKHWD Y6, Y4, Y1
	VPUNPCKLWD Y7, Y5, Y2
	VPUNPCKHWD Y7, Y5, Y3
	PAIR(Y0, Y1, Y4, 0, 64)
	PAIR(Y2, Y3, Y5, 32, 96)
	ADDQ       $32, SI
	ADDQ       $128, DX
	ADDQ       $128, DI
	SUBQ       $128, CX
	JNZ        loop
	VZEROUPPER
	RET

// EIGHT writes 4 words of eight bytes, and 4 of those 16 behind them: LOW has their lower bytes, HIGH the others.
#define EIGHT(LOW, HIGH, N) \
	VPUNPCKLDQ HIGH, LOW, Y8        \
	VPUNPCKHDQ HIGH, LOW, Y9        \
	PAIR(Y8, Y9, Y10, (32*N), (32*N+128))

// func uniteWords8(x, planes, y unsafe.Pointer, bytes int)
TEXT ·uniteWords8(SB), NOSPLIT, $0-32
	PLANES(3)
	LEAQ (R8)(R8*2), R9

loop:
	LEAQ       (SI)(R8*4), R10
	VMOVDQU    (SI), Y0
	VMOVDQU    (SI)(R8*1), Y1
	VMOVDQU    (SI)(R8*2), Y2
	VMOVDQU    (SI)(R9*1), Y3
	VMOVDQU    (R10), Y4
	VMOVDQU    (R10)(R8*1), Y5
	VMOVDQU    (R10)(R8*2), Y6
	VMOVDQU    (R10)(R9*1), Y7
	VPUNPCKLBW Y1, Y0, Y8
	VPUNPCKHBW Y1, Y0, Y9
	VPUNPCKLBW Y3, Y2, Y10
	VPUNPCKHBW Y3, Y2, Y11
	VPUNPCKLBW Y5, Y4, Y12
	VPUNPCKHBW Y5, Y4, Y13
	VPUNPCKLBW Y7, Y6, Y14
	VPUNPCKHBW Y7, Y6, Y15
	VPUNPCKLWD Y10, Y8, Y0
	VPUNPCKHWD Y10, Y8, Y1
	VPUNPCKLWD Y11, Y9, Y2
	VPUNPCKHWD Y11, Y9, Y3
	VPUNPCKLWD Y14, Y12, Y4
	VPUNPCKHWD Y14, Y12, Y5
	VPUNPCKLWD Y15, Y13, Y6
	VPUNPCKHWD Y15, Y13, Y7
	EIGHT(Y0, Y4, 0)
	EIGHT(Y1, Y5, 1)
	EIGHT(Y2, Y6, 2)
	EIGHT(Y3, Y7, 3)
	ADDQ       $32, SI
	ADDQ       $256, DX
	ADDQ       $256, DI
	SUBQ       $256, CX
	JNZ        loop
	VZEROUPPER
	RET

// SPREAD writes 8 bytes: the next ones of the source where byte N of the bitmap has marks, and zeros elsewhere. R8 has the permutations by marks.
#define SPREAD(N) \
	MOVBLZX N(DX), AX               \
	VMOVQ   (SI), X0                \
	VMOVQ   (R8)(AX*8), X1          \
	VPSHUFB X1, X0, X0              \
	VMOVQ   X0, (8*N)(DI)           \
	POPCNTL AX, AX                  \
	ADDQ    AX, SI

// func expandUnits(p, src, bitmap unsafe.Pointer, units, left, least int) (done, taken int)
// It ends before a unit of 64 bytes if fewer than least bytes of the source are left, or fewer than the unit has marks.
TEXT ·expandUnits(SB), NOSPLIT, $0-64
	MOVQ  p+0(FP), DI
	MOVQ  src+8(FP), SI
	MOVQ  bitmap+16(FP), DX
	MOVQ  units+24(FP), CX
	MOVQ  left+32(FP), BX
	MOVQ  least+40(FP), R9
	LEAQ  ·shuffles(SB), R8
	VPXOR Y2, Y2, Y2

loop:
	MOVQ  (DX), AX
	TESTQ AX, AX
	JZ    zeros
	CMPQ  BX, R9
	JLT   end
	POPCNTQ AX, AX
	SUBQ  AX, BX
	JLT   short
	SPREAD(0)
	SPREAD(1)
	SPREAD(2)
	SPREAD(3)
	SPREAD(4)
	SPREAD(5)
	SPREAD(6)
	SPREAD(7)

next:
	ADDQ $64, DI
	ADDQ $8, DX
	DECQ CX
	JNZ  loop
	JMP  end

zeros:
	VMOVDQU Y2, (DI)
	VMOVDQU Y2, 32(DI)
	JMP     next

short:
	ADDQ AX, BX

end:
	MOVQ units+24(FP), AX
	SUBQ CX, AX
	MOVQ AX, done+48(FP)
	MOVQ left+32(FP), AX
	SUBQ BX, AX
	MOVQ AX, taken+56(FP)
	VZEROUPPER
	RET
