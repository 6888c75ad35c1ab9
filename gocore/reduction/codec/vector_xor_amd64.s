//go:build !race

#include "textflag.h"

// Byte planes and sparse bytes.

// DIFFER makes Z0 the words at SI XOR those at DX.
#define DIFFER \
	VMOVDQU64 (SI), Z0              \
	VPXORQ    (DX), Z0, Z0          \
	ADDQ      $64, SI               \
	ADDQ      $64, DX

// func xorPlanes8(planes, x, y unsafe.Pointer, bytes int)
TEXT ·xorPlanes8(SB), NOSPLIT, $0-32
	MOVQ planes+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ bytes+24(FP), CX

loop:
	DIFFER
	VMOVDQU64 Z0, (DI)
	ADDQ      $64, DI
	SUBQ      $64, CX
	JNZ       loop
	VZEROUPPER
	RET

// func xorPlanes16(planes, x, y unsafe.Pointer, bytes int)
TEXT ·xorPlanes16(SB), NOSPLIT, $0-32
	MOVQ planes+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ bytes+24(FP), CX
	MOVQ CX, R8
	SHRQ $1, R8

loop:
	DIFFER
	VPSRLW  $8, Z0, Z1
	VPMOVWB Z0, Y0
	VPMOVWB Z1, Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, (DI)(R8*1)
	ADDQ    $32, DI
	SUBQ    $64, CX
	JNZ     loop
	VZEROUPPER
	RET

// func xorPlanes32(planes, x, y unsafe.Pointer, bytes int)
TEXT ·xorPlanes32(SB), NOSPLIT, $0-32
	MOVQ planes+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ bytes+24(FP), CX
	MOVQ CX, R8
	SHRQ $2, R8
	LEAQ (R8)(R8*2), R9

loop:
	DIFFER
	VPSRLD  $8, Z0, Z1
	VPSRLD  $16, Z0, Z2
	VPSRLD  $24, Z0, Z3
	VPMOVDB Z0, X0
	VPMOVDB Z1, X1
	VPMOVDB Z2, X2
	VPMOVDB Z3, X3
	VMOVDQU X0, (DI)
	VMOVDQU X1, (DI)(R8*1)
	VMOVDQU X2, (DI)(R8*2)
	VMOVDQU X3, (DI)(R9*1)
	ADDQ    $16, DI
	SUBQ    $64, CX
	JNZ     loop
	VZEROUPPER
	RET

// EIGHTH writes a byte of each of 8 words, and moves the next byte down.
#define EIGHTH \
	VPMOVQB Z0, X1                  \
	VMOVQ   X1, (R9)                \
	ADDQ    R8, R9                  \
	VPSRLQ  $8, Z0, Z0

// func xorPlanes64(planes, x, y unsafe.Pointer, bytes int)
TEXT ·xorPlanes64(SB), NOSPLIT, $0-32
	MOVQ planes+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ bytes+24(FP), CX
	MOVQ CX, R8
	SHRQ $3, R8

loop:
	DIFFER
	MOVQ DI, R9
	EIGHTH
	EIGHTH
	EIGHTH
	EIGHTH
	EIGHTH
	EIGHTH
	EIGHTH
	EIGHTH
	ADDQ $8, DI
	SUBQ $64, CX
	JNZ  loop
	VZEROUPPER
	RET

// func xorWords16(x, planes, y unsafe.Pointer, bytes int)
TEXT ·xorWords16(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), DI
	MOVQ planes+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ bytes+24(FP), CX
	MOVQ CX, R8
	SHRQ $1, R8

loop:
	VPMOVZXBW  (SI), Z0
	VPMOVZXBW  (SI)(R8*1), Z1
	VPSLLW     $8, Z1, Z1
	VPTERNLOGQ $0x96, (DX), Z1, Z0
	VMOVDQU64  Z0, (DI)
	ADDQ       $32, SI
	ADDQ       $64, DX
	ADDQ       $64, DI
	SUBQ       $64, CX
	JNZ        loop
	VZEROUPPER
	RET

// func xorWords32(x, planes, y unsafe.Pointer, bytes int)
TEXT ·xorWords32(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), DI
	MOVQ planes+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ bytes+24(FP), CX
	MOVQ CX, R8
	SHRQ $2, R8
	LEAQ (R8)(R8*2), R9

loop:
	VPMOVZXBD  (SI), Z0
	VPMOVZXBD  (SI)(R8*1), Z1
	VPMOVZXBD  (SI)(R8*2), Z2
	VPMOVZXBD  (SI)(R9*1), Z3
	VPSLLD     $8, Z1, Z1
	VPSLLD     $16, Z2, Z2
	VPSLLD     $24, Z3, Z3
	VPTERNLOGQ $0x96, Z1, Z2, Z0
	VPTERNLOGQ $0x96, (DX), Z3, Z0
	VMOVDQU64  Z0, (DI)
	ADDQ       $16, SI
	ADDQ       $64, DX
	ADDQ       $64, DI
	SUBQ       $64, CX
	JNZ        loop
	VZEROUPPER
	RET

// MORE adds the byte of a plane to the words Z0.
#define MORE(N) \
	ADDQ      R8, R9                \
	VPMOVZXBQ (R9), Z1              \
	VPSLLQ    $N, Z1, Z1            \
	VPORQ     Z1, Z0, Z0

// func xorWords64(x, planes, y unsafe.Pointer, bytes int)
TEXT ·xorWords64(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), DI
	MOVQ planes+8(FP), SI
	MOVQ y+16(FP), DX
	MOVQ bytes+24(FP), CX
	MOVQ CX, R8
	SHRQ $3, R8

loop:
	MOVQ      SI, R9
	VPMOVZXBQ (R9), Z0
	MORE(8)
	MORE(16)
	MORE(24)
	MORE(32)
	MORE(40)
	MORE(48)
	MORE(56)
	VPXORQ    (DX), Z0, Z0
	VMOVDQU64 Z0, (DI)
	ADDQ      $8, SI
	ADDQ      $64, DX
	ADDQ      $64, DI
	SUBQ      $64, CX
	JNZ       loop
	VZEROUPPER
	RET

// func marks64(bitmap, p unsafe.Pointer, units int) (count int)
TEXT ·marks64(SB), NOSPLIT, $0-32
	MOVQ bitmap+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ units+16(FP), CX
	XORQ BX, BX

loop:
	VMOVDQU64 (SI), Z0
	VPTESTMB  Z0, Z0, K1
	KMOVQ     K1, AX
	MOVQ      AX, (DI)
	POPCNTQ   AX, AX
	ADDQ      AX, BX
	ADDQ      $64, SI
	ADDQ      $8, DI
	DECQ      CX
	JNZ       loop
	MOVQ      BX, count+24(FP)
	VZEROUPPER
	RET

// func compress64(dst, p, bitmap unsafe.Pointer, units int) (count int)
TEXT ·compress64(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ p+8(FP), SI
	MOVQ bitmap+16(FP), DX
	MOVQ units+24(FP), CX
	MOVQ DI, R8
	MOVQ $-1, R9

loop:
	MOVQ        (DX), AX
	TESTQ       AX, AX
	JZ          next
	KMOVQ       AX, K1
	VMOVDQU64   (SI), Z0
	VPCOMPRESSB Z0, K1, Z0
	POPCNTQ     AX, AX
	BZHIQ       AX, R9, R10
	KMOVQ       R10, K2
	VMOVDQU8    Z0, K2, (DI)
	ADDQ        AX, DI

next:
	ADDQ $64, SI
	ADDQ $8, DX
	DECQ CX
	JNZ  loop
	SUBQ R8, DI
	MOVQ DI, count+32(FP)
	VZEROUPPER
	RET

// func expand64s(p, src, bitmap unsafe.Pointer, units, left int) (count int)
TEXT ·expand64s(SB), NOSPLIT, $0-48
	MOVQ   p+0(FP), DI
	MOVQ   src+8(FP), SI
	MOVQ   bitmap+16(FP), DX
	MOVQ   units+24(FP), CX
	MOVQ   left+32(FP), BX
	MOVQ   SI, R8
	MOVQ   $-1, R9
	VPXORQ Z1, Z1, Z1

loop:
	MOVQ        (DX), AX
	VMOVDQU64   Z1, (DI)
	TESTQ       AX, AX
	JZ          next
	KMOVQ       AX, K1
	POPCNTQ     AX, AX
	SUBQ        AX, BX
	JLT         short
	BZHIQ       AX, R9, R10
	KMOVQ       R10, K2
	VMOVDQU8.Z  (SI), K2, Z0
	VPEXPANDB.Z Z0, K1, Z0
	VMOVDQU64   Z0, (DI)
	ADDQ        AX, SI

next:
	ADDQ $64, DI
	ADDQ $8, DX
	DECQ CX
	JNZ  loop
	SUBQ R8, SI
	MOVQ SI, count+40(FP)
	VZEROUPPER
	RET

short:
	MOVQ $-1, count+40(FP)
	VZEROUPPER
	RET

#define COMBINE(OP) \
	VMOVDQU64 (SI), Z0              \
	OP        (DX), Z0, Z0          \
	VMOVDQU64 Z0, (DI)              \
	ADDQ      $64, SI               \
	ADDQ      $64, DX               \
	ADDQ      $64, DI               \
	SUBQ      $64, CX

// func add8(dst, a, b unsafe.Pointer, bytes int)
TEXT ·add8(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ bytes+24(FP), CX

loop:
	COMBINE(VPADDB)
	JNZ loop
	VZEROUPPER
	RET

// func add16(dst, a, b unsafe.Pointer, bytes int)
TEXT ·add16(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ bytes+24(FP), CX

loop:
	COMBINE(VPADDW)
	JNZ loop
	VZEROUPPER
	RET

// func add32(dst, a, b unsafe.Pointer, bytes int)
TEXT ·add32(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ bytes+24(FP), CX

loop:
	COMBINE(VPADDD)
	JNZ loop
	VZEROUPPER
	RET

// func add64(dst, a, b unsafe.Pointer, bytes int)
TEXT ·add64(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ bytes+24(FP), CX

loop:
	COMBINE(VPADDQ)
	JNZ loop
	VZEROUPPER
	RET

// func subtract8(dst, a, b unsafe.Pointer, bytes int)
TEXT ·subtract8(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ bytes+24(FP), CX

loop:
	COMBINE(VPSUBB)
	JNZ loop
	VZEROUPPER
	RET

// func subtract16(dst, a, b unsafe.Pointer, bytes int)
TEXT ·subtract16(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ bytes+24(FP), CX

loop:
	COMBINE(VPSUBW)
	JNZ loop
	VZEROUPPER
	RET

// func subtract32(dst, a, b unsafe.Pointer, bytes int)
TEXT ·subtract32(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ bytes+24(FP), CX

loop:
	COMBINE(VPSUBD)
	JNZ loop
	VZEROUPPER
	RET

// func subtract64(dst, a, b unsafe.Pointer, bytes int)
TEXT ·subtract64(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ bytes+24(FP), CX

loop:
	COMBINE(VPSUBQ)
	JNZ loop
	VZEROUPPER
	RET
