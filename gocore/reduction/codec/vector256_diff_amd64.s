//go:build !race

#include "textflag.h"
#include "transpose256_amd64.h"

// Decoding of modes Diff and Step with AVX2. A twin in Go writes the same bytes.

// Planes to zig-zag values.

// WIDTH makes AX the bytes of the planes of the next block, and R10 the mask that keeps those. CX is log2 of the bytes of a plane.
#define WIDTH \
	MOVBLZX (DX), AX                \
	INCQ    DX                      \
	SHLQ    CX, AX                  \
	MOVQ    R9, R10                 \
	SUBQ    AX, R10

// ARGUMENTS loads the arguments of the functions that unpack.
#define ARGUMENTS \
	MOVQ z+0(FP), DI                \
	MOVQ src+8(FP), SI              \
	MOVQ widths+16(FP), DX          \
	MOVQ blocks+24(FP), BX

// func unpackWords1(z, src, widths unsafe.Pointer, blocks int)
TEXT ·unpackWords1(SB), NOSPLIT, $0-32
	ARGUMENTS
	CONSTANTS
	VMOVDQU zip256<>(SB), Y11
	MOVQ    $2, CX

loop:
	WIDTH
	VMOVDQU (SI), Y0
	VPAND   (R10), Y0, Y0
	ADDQ    AX, SI
	BYTES32(Y0, Y1)
	VMOVDQU Y0, (DI)
	ADDQ    $32, DI
	DECQ    BX
	JNZ     loop
	VZEROUPPER
	RET

// func unpackWords2(z, src, widths unsafe.Pointer, blocks int)
TEXT ·unpackWords2(SB), NOSPLIT, $0-32
	ARGUMENTS
	CONSTANTS
	VMOVDQU zip256<>(SB), Y11
	MOVQ    $2, CX

loop:
	WIDTH
	VMOVDQU    (SI), Y0
	VMOVDQU    32(SI), Y1
	VPAND      (R10), Y0, Y0
	VPAND      32(R10), Y1, Y1
	ADDQ       AX, SI
	BYTES32(Y0, Y2)
	BYTES32(Y1, Y3)
	VPUNPCKLBW Y1, Y0, Y2
	VPUNPCKHBW Y1, Y0, Y3
	VPERM2I128 $0x20, Y3, Y2, Y0
	VPERM2I128 $0x31, Y3, Y2, Y1
	VMOVDQU    Y0, (DI)
	VMOVDQU    Y1, 32(DI)
	ADDQ       $64, DI
	DECQ       BX
	JNZ        loop
	VZEROUPPER
	RET

// func unpackWords4(z, src, widths unsafe.Pointer, blocks int)
TEXT ·unpackWords4(SB), NOSPLIT, $0-32
	ARGUMENTS
	CONSTANTS
	VMOVDQU unzip256<>(SB), Y12
	XORQ    CX, CX

loop:
	WIDTH
	VMOVDQU (SI), Y0
	VPAND   (R10), Y0, Y0
	ADDQ    AX, SI
	WORDS8(Y0, Y1)
	VMOVDQU Y0, (DI)
	ADDQ    $32, DI
	DECQ    BX
	JNZ     loop
	VZEROUPPER
	RET

// func unpackWords8(z, src, widths unsafe.Pointer, blocks int)
TEXT ·unpackWords8(SB), NOSPLIT, $0-32
	ARGUMENTS
	CONSTANTS
	VMOVDQU unzip256<>(SB), Y12
	XORQ    CX, CX

loop:
	WIDTH
	VMOVDQU    (SI), Y0
	VMOVDQU    32(SI), Y1
	VPAND      (R10), Y0, Y0
	VPAND      32(R10), Y1, Y1
	ADDQ       AX, SI
	WORDS8(Y0, Y2)
	WORDS8(Y1, Y3)
	VPUNPCKLDQ Y1, Y0, Y2
	VPUNPCKHDQ Y1, Y0, Y3
	VPERM2I128 $0x20, Y3, Y2, Y0
	VPERM2I128 $0x31, Y3, Y2, Y1
	VMOVDQU    Y0, (DI)
	VMOVDQU    Y1, 32(DI)
	ADDQ       $64, DI
	DECQ       BX
	JNZ        loop
	VZEROUPPER
	RET

// Zig-zag values to words.

// Ones in the high half of a register.
DATA high256<>+0(SB)/8, $0
DATA high256<>+8(SB)/8, $0
DATA high256<>+16(SB)/8, $-1
DATA high256<>+24(SB)/8, $-1
GLOBL high256<>(SB), RODATA|NOPTR, $32

// UNZIGZAG makes Y0 the differences of the zig-zag values at DI. Y12 has bit 0 of each word, Y13 the bits of a word but the topmost.
#define UNZIGZAG(SHIFT, SUB) \
	VMOVDQU (DI), Y0                \
	VPAND   Y12, Y0, Y1             \
	SHIFT   $1, Y0, Y0              \
	VPAND   Y13, Y0, Y0             \
	SUB     Y1, Y11, Y1             \
	VPXOR   Y1, Y0, Y0

// Each adds to the words of Y0 those some bytes before, within 16 bytes.
#define BEFORE(N, ADD) \
	VPSLLDQ $N, Y0, Y1              \
	ADD     Y1, Y0, Y0
#define BEFORE1(ADD) \
	BEFORE(1, ADD)                  \
	BEFORE(2, ADD)                  \
	BEFORE(4, ADD)                  \
	BEFORE(8, ADD)
#define BEFORE2(ADD) \
	BEFORE(2, ADD)                  \
	BEFORE(4, ADD)                  \
	BEFORE(8, ADD)
#define BEFORE4(ADD) \
	BEFORE(4, ADD)                  \
	BEFORE(8, ADD)
#define BEFORE8(ADD) BEFORE(8, ADD)

// ACROSS adds the sum of the low half of Y0 to its high half, and CARRY to all words. CARRY becomes the last word, in one addition: the next
// register waits for no more than that. Y10 repeats the last word of 16 bytes.
#define ACROSS(ADD, CARRY) \
	VPSHUFB    Y10, Y0, Y1          \
	VPERM2I128 $0x01, Y1, Y1, Y2    \
	ADD        Y1, Y2, Y3           \
	VPAND      Y14, Y2, Y2          \
	ADD        Y2, Y0, Y0           \
	ADD        CARRY, Y0, Y0        \
	ADD        Y3, CARRY, CARRY

// SUMS is a function that sums. Y8 has the last change, Y9 the last word, and SI the address of the next words of the reference, or 0.
#define SUMS(LANES, ADD, SUB, SHIFT, BROADCAST) \
	MOVQ           z+0(FP), DI      \
	MOVQ           y+8(FP), SI      \
	MOVQ           bytes+16(FP), CX \
	LEAQ           first+24(FP), R11 \
	MOVQ           order+32(FP), DX \
	MOVQ           table+40(FP), R8 \
	VBROADCASTI128 (R8), Y10        \
	VPXOR          Y11, Y11, Y11    \
	VPBROADCASTQ   16(R8), Y12      \
	VPBROADCASTQ   24(R8), Y13      \
	VMOVDQU        high256<>(SB), Y14 \
	VPXOR          Y8, Y8, Y8       \
	BROADCAST      (R11), Y9        \
loop: \
	UNZIGZAG(SHIFT, SUB)            \
	CMPQ           DX, $2           \
	JNE            once             \
	LANES(ADD)                      \
	ACROSS(ADD, Y8)                 \
once: \
	LANES(ADD)                      \
	ACROSS(ADD, Y9)                 \
	TESTQ          SI, SI           \
	JZ             store            \
	ADD            (SI), Y0, Y0     \
	ADDQ           $32, SI          \
store: \
	VMOVDQU        Y0, (DI)         \
	ADDQ           $32, DI          \
	SUBQ           $32, CX          \
	JNZ            loop             \
	VZEROUPPER                      \
	RET

// func sumWords1(z, y unsafe.Pointer, bytes int, first uint64, order int, table unsafe.Pointer)
TEXT ·sumWords1(SB), NOSPLIT, $0-48
	SUMS(BEFORE1, VPADDB, VPSUBB, VPSRLW, VPBROADCASTB)

// func sumWords2(z, y unsafe.Pointer, bytes int, first uint64, order int, table unsafe.Pointer)
TEXT ·sumWords2(SB), NOSPLIT, $0-48
	SUMS(BEFORE2, VPADDW, VPSUBW, VPSRLW, VPBROADCASTW)

// func sumWords4(z, y unsafe.Pointer, bytes int, first uint64, order int, table unsafe.Pointer)
TEXT ·sumWords4(SB), NOSPLIT, $0-48
	SUMS(BEFORE4, VPADDD, VPSUBD, VPSRLD, VPBROADCASTD)

// func sumWords8(z, y unsafe.Pointer, bytes int, first uint64, order int, table unsafe.Pointer)
TEXT ·sumWords8(SB), NOSPLIT, $0-48
	SUMS(BEFORE8, VPADDQ, VPSUBQ, VPSRLQ, VPBROADCASTQ)
