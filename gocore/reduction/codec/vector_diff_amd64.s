//go:build !race

#include "textflag.h"

// AVX-512 versions of loops over a whole chunk. Each does what the function of vector_amd64.go that calls it says; a twin in Go writes the same bytes.

// The matrix whose row i has bit i alone: VGF2P8AFFINEQB with it transposes 8x8 bits whose rows are in reverse order.
DATA identity<>+0(SB)/8, $0x8040201008040201
GLOBL identity<>(SB), RODATA|NOPTR, $8

// CHANGES makes Z2, the change of the words Z0 since the ones before, and Z4, that of the changes. Z1 and Z3 have the last words and changes.
#define CHANGES(ALIGN, SUB) \
	VMOVDQU64 (SI), Z0              \
	VALIGNQ   $6, Z1, Z0, Z2        \
	VPALIGNR  $ALIGN, Z2, Z0, Z2    \
	SUB       Z2, Z0, Z2            \
	VMOVDQA64 Z0, Z1                \
	VALIGNQ   $6, Z3, Z2, Z4        \
	VPALIGNR  $ALIGN, Z4, Z2, Z4    \
	SUB       Z4, Z2, Z4            \
	VMOVDQA64 Z2, Z3

// ZIGZAGS writes the zig-zag values of Z2 and Z4, and leaves them in Z5 and Z7.
#define ZIGZAGS(ADD, TOMASK, FROMMASK) \
	ADD       Z2, Z2, Z5            \
	TOMASK    Z2, K1                \
	FROMMASK  K1, Z6                \
	VPXORQ    Z6, Z5, Z5            \
	ADD       Z4, Z4, Z7            \
	TOMASK    Z4, K2                \
	FROMMASK  K2, Z8                \
	VPXORQ    Z8, Z7, Z7            \
	VMOVDQU64 Z5, (DI)              \
	VMOVDQU64 Z7, (R8)

// HALVES makes the two halves of Z5 and of Z7 equal to their union.
#define HALVES \
	VSHUFI64X2 $0x4e, Z5, Z5, Z9    \
	VPORQ      Z9, Z5, Z5           \
	VSHUFI64X2 $0x4e, Z7, Z7, Z9    \
	VPORQ      Z9, Z7, Z7

// UNITE makes Z9 the unions of each half of Z5 and Z7, in turn, in 64 bits.
#define UNITE \
	VPERMQ      $0x4e, Z5, Z9       \
	VPORQ       Z5, Z9, Z9          \
	VPERMQ      $0x4e, Z7, Z10      \
	VPORQ       Z7, Z10, Z10        \
	VPUNPCKLQDQ Z10, Z9, Z11        \
	VPUNPCKHQDQ Z10, Z9, Z9         \
	VPORQ       Z11, Z9, Z9

#define FOLD(N) \
	VPSRLQ $N, Z9, Z10              \
	VPORQ  Z10, Z9, Z9

// WIDTHS makes AX the widths of Z9: bytes 0 and 1 those of the first half of Z5 and Z7, bytes 4 and 5 those of the second.
#define WIDTHS \
	VPANDQ   Z30, Z9, Z9            \
	VPLZCNTQ Z9, Z9                 \
	VPSUBQ   Z9, Z31, Z9            \
	VPMOVQB  Z9, X9                 \
	VMOVQ    X9, AX

// TWO writes the widths of two blocks for both orders, ONE those of one block.
#define TWO \
	MOVB AX, (R9)                   \
	SHRQ $8, AX                     \
	MOVB AX, (R10)                  \
	SHRQ $24, AX                    \
	MOVB AX, 1(R9)                  \
	SHRQ $8, AX                     \
	MOVB AX, 1(R10)                 \
	ADDQ $2, R9                     \
	ADDQ $2, R10

#define ONE \
	MOVB AX, (R9)                   \
	SHRQ $8, AX                     \
	MOVB AX, (R10)                  \
	INCQ R9                         \
	INCQ R10

// BEGIN prepares the constants; MASK has the bits of a word.
#define BEGIN(BROADCAST, MASK) \
	BROADCAST    (SI), Z1           \
	VPXORQ       Z3, Z3, Z3         \
	MOVQ         $MASK, AX          \
	VPBROADCASTQ AX, Z30            \
	MOVQ         $64, AX            \
	VPBROADCASTQ AX, Z31

#define NEXT \
	ADDQ $64, SI                    \
	ADDQ $64, DI                    \
	ADDQ $64, R8                    \
	SUBQ $64, CX

// func differences8(one, two, widthsOne, widthsTwo, x unsafe.Pointer, bytes int)
TEXT ·differences8(SB), NOSPLIT, $0-48
	MOVQ one+0(FP), DI
	MOVQ two+8(FP), R8
	MOVQ widthsOne+16(FP), R9
	MOVQ widthsTwo+24(FP), R10
	MOVQ x+32(FP), SI
	MOVQ bytes+40(FP), CX
	BEGIN(VPBROADCASTB, 0xff)

loop:
	CHANGES(15, VPSUBB)
	ZIGZAGS(VPADDB, VPMOVB2M, VPMOVM2B)
	UNITE
	FOLD(32)
	FOLD(16)
	FOLD(8)
	WIDTHS
	TWO
	NEXT
	JNZ loop
	VZEROUPPER
	RET

// func differences16(one, two, widthsOne, widthsTwo, x unsafe.Pointer, bytes int)
TEXT ·differences16(SB), NOSPLIT, $0-48
	MOVQ one+0(FP), DI
	MOVQ two+8(FP), R8
	MOVQ widthsOne+16(FP), R9
	MOVQ widthsTwo+24(FP), R10
	MOVQ x+32(FP), SI
	MOVQ bytes+40(FP), CX
	BEGIN(VPBROADCASTW, 0xffff)

loop:
	CHANGES(14, VPSUBW)
	ZIGZAGS(VPADDW, VPMOVW2M, VPMOVM2W)
	HALVES
	UNITE
	FOLD(32)
	FOLD(16)
	WIDTHS
	ONE
	NEXT
	JNZ loop
	VZEROUPPER
	RET

// func differences32(one, two, widthsOne, widthsTwo, x unsafe.Pointer, bytes int)
TEXT ·differences32(SB), NOSPLIT, $0-48
	MOVQ one+0(FP), DI
	MOVQ two+8(FP), R8
	MOVQ widthsOne+16(FP), R9
	MOVQ widthsTwo+24(FP), R10
	MOVQ x+32(FP), SI
	MOVQ bytes+40(FP), CX
	BEGIN(VPBROADCASTD, 0xffffffff)

loop:
	CHANGES(12, VPSUBD)
	ZIGZAGS(VPADDD, VPMOVD2M, VPMOVM2D)
	UNITE
	FOLD(32)
	WIDTHS
	TWO
	NEXT
	JNZ loop
	VZEROUPPER
	RET

// func differences64(one, two, widthsOne, widthsTwo, x unsafe.Pointer, bytes int)
TEXT ·differences64(SB), NOSPLIT, $0-48
	MOVQ one+0(FP), DI
	MOVQ two+8(FP), R8
	MOVQ widthsOne+16(FP), R9
	MOVQ widthsTwo+24(FP), R10
	MOVQ x+32(FP), SI
	MOVQ bytes+40(FP), CX
	BEGIN(VPBROADCASTQ, -1)

loop:
	CHANGES(8, VPSUBQ)
	ZIGZAGS(VPADDQ, VPMOVQ2M, VPMOVM2Q)
	HALVES
	UNITE
	WIDTHS
	ONE
	NEXT
	JNZ loop
	VZEROUPPER
	RET

// TRANSPOSE, with the TABLES at R8, permutes the bytes of Z0, transposes 8x8 bits, and permutes again.
#define TRANSPOSE \
	VPERMB         Z0, Z20, Z0      \
	VGF2P8AFFINEQB $0, Z0, Z22, Z0  \
	VPERMB         Z0, Z21, Z0

#define TABLES \
	VMOVDQU64    (R8), Z20          \
	VMOVDQU64    64(R8), Z21        \
	VPBROADCASTQ identity<>(SB), Z22

// func planesOfLong(dst, z, widths unsafe.Pointer, blocks int, tables unsafe.Pointer, shift int)
TEXT ·planesOfLong(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ z+8(FP), SI
	MOVQ widths+16(FP), DX
	MOVQ blocks+24(FP), BX
	MOVQ tables+32(FP), R8
	MOVQ shift+40(FP), CX
	TABLES

loop:
	VMOVDQU64 (SI), Z0
	TRANSPOSE
	VMOVDQU64 Z0, (DI)
	MOVBLZX   (DX), AX
	SHLQ      CX, AX
	ADDQ      AX, DI
	ADDQ      $64, SI
	INCQ      DX
	DECQ      BX
	JNZ       loop
	VZEROUPPER
	RET

// func planesOfShort(dst, z, widths unsafe.Pointer, blocks int, tables unsafe.Pointer, shift int)
TEXT ·planesOfShort(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ z+8(FP), SI
	MOVQ widths+16(FP), DX
	MOVQ blocks+24(FP), BX
	MOVQ tables+32(FP), R8
	MOVQ shift+40(FP), CX
	TABLES

loop:
	VMOVDQU64     (SI), Z0
	TRANSPOSE
	VMOVDQU       Y0, (DI)
	MOVBLZX       (DX), AX
	SHLQ          CX, AX
	ADDQ          AX, DI
	VEXTRACTI64X4 $1, Z0, Y0
	VMOVDQU       Y0, (DI)
	MOVBLZX       1(DX), AX
	SHLQ          CX, AX
	ADDQ          AX, DI
	ADDQ          $64, SI
	ADDQ          $2, DX
	SUBQ          $2, BX
	JNZ           loop
	VZEROUPPER
	RET

// LOAD reads the planes of a block of the width at W; the bytes behind them are 0.
#define LOAD(W, TO) \
	MOVBLZX     W, AX               \
	SHLQ        CX, AX              \
	BZHIQ       AX, R9, R10         \
	KMOVQ       R10, K1             \
	VMOVDQU8.Z  (SI), K1, TO        \
	ADDQ        AX, SI

// func blocksOfLong(z, src, widths unsafe.Pointer, blocks int, tables unsafe.Pointer, shift int)
TEXT ·blocksOfLong(SB), NOSPLIT, $0-48
	MOVQ z+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ widths+16(FP), DX
	MOVQ blocks+24(FP), BX
	MOVQ tables+32(FP), R8
	MOVQ shift+40(FP), CX
	TABLES
	MOVQ $-1, R9

loop:
	LOAD((DX), Z0)
	TRANSPOSE
	VMOVDQU64 Z0, (DI)
	ADDQ      $64, DI
	INCQ      DX
	DECQ      BX
	JNZ       loop
	VZEROUPPER
	RET

// func blocksOfShort(z, src, widths unsafe.Pointer, blocks int, tables unsafe.Pointer, shift int)
TEXT ·blocksOfShort(SB), NOSPLIT, $0-48
	MOVQ z+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ widths+16(FP), DX
	MOVQ blocks+24(FP), BX
	MOVQ tables+32(FP), R8
	MOVQ shift+40(FP), CX
	TABLES
	MOVQ $-1, R9

loop:
	LOAD((DX), Z0)
	LOAD(1(DX), Z1)
	VINSERTI64X4 $1, Y1, Z0, Z0
	TRANSPOSE
	VMOVDQU64    Z0, (DI)
	ADDQ         $64, DI
	ADDQ         $2, DX
	SUBQ         $2, BX
	JNZ          loop
	VZEROUPPER
	RET

// CHANGE makes Z0 the differences of the zig-zag values at DI; Z29 has bit 0 of each word, Z30 the bits of a word but the topmost, or all.
#define CHANGE(SHIFT, SUB) \
	VMOVDQU64 (DI), Z0              \
	VPANDQ    Z29, Z0, Z1           \
	SHIFT     $1, Z0, Z0            \
	VPANDQ    Z30, Z0, Z0           \
	SUB       Z1, Z28, Z1           \
	VPXORQ    Z1, Z0, Z0

// Each adds to the words of Z0 those some bytes before, within 16 bytes.
#define SUM(N, ADD) \
	VPSLLDQ $N, Z0, Z1              \
	ADD     Z1, Z0, Z0
#define SUM8(ADD) \
	SUM(1, ADD)                     \
	SUM(2, ADD)                     \
	SUM(4, ADD)                     \
	SUM(8, ADD)
#define SUM16(ADD) \
	SUM(2, ADD)                     \
	SUM(4, ADD)                     \
	SUM(8, ADD)
#define SUM32(ADD) \
	SUM(4, ADD)                     \
	SUM(8, ADD)
#define SUM64(ADD) SUM(8, ADD)

// ACROSS adds to each 16 bytes the last word of all 16 bytes before, and CARRY, which becomes the last word of all. Z27 repeats the last word.
#define ACROSS(ADD, CARRY) \
	VPSHUFB    Z27, Z0, Z1          \
	VALIGNQ    $6, Z28, Z1, Z1      \
	VALIGNQ    $6, Z28, Z1, Z2      \
	ADD        Z2, Z1, Z1           \
	VALIGNQ    $4, Z28, Z1, Z2      \
	ADD        Z2, Z1, Z1           \
	ADD        Z1, Z0, Z0           \
	ADD        CARRY, Z0, Z0        \
	VPSHUFB    Z27, Z0, CARRY       \
	VSHUFI64X2 $0xff, CARRY, CARRY, CARRY

#define SUMS(LANES, ADD, SUB, SHIFT, BROADCAST) \
	VBROADCASTI32X4 (R8), Z27       \
	VPBROADCASTQ   16(R8), Z29      \
	VPBROADCASTQ   24(R8), Z30      \
	BROADCAST      (R11), Z26   \
	VPXORQ         Z25, Z25, Z25    \
	VPXORQ         Z28, Z28, Z28    \
loop: \
	CHANGE(SHIFT, SUB)              \
	CMPQ           DX, $2           \
	JNE            once             \
	LANES(ADD)                      \
	ACROSS(ADD, Z25)                \
once: \
	LANES(ADD)                      \
	ACROSS(ADD, Z26)                \
	VMOVDQU64      Z0, (DI)         \
	ADDQ           $64, DI          \
	SUBQ           $64, CX          \
	JNZ            loop             \
	VZEROUPPER                      \
	RET

// func sums8(z unsafe.Pointer, bytes int, first uint64, order int, tables unsafe.Pointer)
TEXT ·sums8(SB), NOSPLIT, $0-40
	MOVQ z+0(FP), DI
	MOVQ bytes+8(FP), CX
	LEAQ first+16(FP), R11
	MOVQ order+24(FP), DX
	MOVQ tables+32(FP), R8
	SUMS(SUM8, VPADDB, VPSUBB, VPSRLW, VPBROADCASTB)

// func sums16(z unsafe.Pointer, bytes int, first uint64, order int, tables unsafe.Pointer)
TEXT ·sums16(SB), NOSPLIT, $0-40
	MOVQ z+0(FP), DI
	MOVQ bytes+8(FP), CX
	LEAQ first+16(FP), R11
	MOVQ order+24(FP), DX
	MOVQ tables+32(FP), R8
	SUMS(SUM16, VPADDW, VPSUBW, VPSRLW, VPBROADCASTW)

// func sums32(z unsafe.Pointer, bytes int, first uint64, order int, tables unsafe.Pointer)
TEXT ·sums32(SB), NOSPLIT, $0-40
	MOVQ z+0(FP), DI
	MOVQ bytes+8(FP), CX
	LEAQ first+16(FP), R11
	MOVQ order+24(FP), DX
	MOVQ tables+32(FP), R8
	SUMS(SUM32, VPADDD, VPSUBD, VPSRLD, VPBROADCASTD)

// func sums64(z unsafe.Pointer, bytes int, first uint64, order int, tables unsafe.Pointer)
TEXT ·sums64(SB), NOSPLIT, $0-40
	MOVQ z+0(FP), DI
	MOVQ bytes+8(FP), CX
	LEAQ first+16(FP), R11
	MOVQ order+24(FP), DX
	MOVQ tables+32(FP), R8
	SUMS(SUM64, VPADDQ, VPSUBQ, VPSRLQ, VPBROADCASTQ)
