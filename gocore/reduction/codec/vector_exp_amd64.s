//go:build !race

#include "textflag.h"

// Mode Exp for whole groups of 32 words. The top 16 bits of the words of a group are in Z0, in order. SI has the address of an expParts.

#define PLANES  0(SI)
#define BYTES   8(SI)
#define HALVES  16(SI)
#define WORDS   24(SI)
#define ESCAPES 32(SI)
#define PLAIN   40(SI)
#define GROUPS  48(SI)
#define BITS    56(SI)
#define BASE    64(SI)
#define ESCAPE  72(SI)

#define SPLAT(N, TO) \
	MOVL         $N, AX             \
	VPBROADCASTW AX, TO

// BEGIN loads what all kinds need.
#define BEGIN \
	MOVQ         PLANES, DI         \
	MOVQ         BYTES, R8          \
	MOVQ         HALVES, R9         \
	MOVQ         WORDS, R10         \
	MOVQ         ESCAPES, R11       \
	MOVQ         PLAIN, R12         \
	MOVQ         GROUPS, R13        \
	MOVQ         BITS, BX           \
	MOVQ         $-1, DX            \
	VPBROADCASTW BASE, Z20          \
	VPBROADCASTW ESCAPE, Z21        \
	SPLAT(0x7f, Z27)                \
	SPLAT(0x8000, Z28)

// BITS4 makes Z23 to Z26 the values of the bits of a code at a shift.
#define BITS4(SHIFT) \
	SPLAT(1<<SHIFT, Z23)            \
	SPLAT(2<<SHIFT, Z24)            \
	SPLAT(4<<SHIFT, Z25)            \
	SPLAT(8<<SHIFT, Z26)

// PUT writes the plane of the bit B of the words Z.
#define PUT(B, Z) \
	VPTESTMW B, Z, K1               \
	KMOVD    K1, (DI)               \
	ADDQ     $4, DI

// CODES writes the planes of the codes, which are left in Z2, and leaves the exponents in Z1. Z22 has the bits of an exponent.
#define CODES(SHIFT) \
	VPSRLW  $SHIFT, Z0, Z1          \
	VPANDQ  Z22, Z1, Z1             \
	VPSUBW  Z20, Z1, Z2             \
	VPMINUW Z21, Z2, Z2             \
	PUT(Z23, Z2)                    \
	CMPQ    BX, $2                  \
	JLT     coded                   \
	PUT(Z24, Z2)                    \
	CMPQ    BX, $3                  \
	JLT     coded                   \
	PUT(Z25, Z2)                    \
	CMPQ    BX, $4                  \
	JLT     coded                   \
	PUT(Z26, Z2)                    \
coded: \
	VPCMPEQW Z21, Z2, K5            \
	KMOVD   K5, AX

// ESCAPED writes the exponents of AX, not 0, at R11; MORE is 0, or 1 for exponents of two bytes.
#define ESCAPED(COMPRESS, STORE, FROM, MORE) \
	COMPRESS FROM, K5, FROM         \
	POPCNTL  AX, CX                 \
	BZHIQ    CX, DX, AX             \
	KMOVD    AX, K6                 \
	STORE    FROM, K6, (R11)        \
	SHLQ     $MORE, CX              \
	ADDQ     CX, R11

// SIGNED writes the bytes of signs and high bits of mantissas of 8 bits of exponent.
#define SIGNED \
	VPSRLW     $8, Z0, Z4           \
	VPTERNLOGQ $0xd8, Z27, Z0, Z4   \
	VPMOVWB    Z4, Y4               \
	VMOVDQU    Y4, (R8)             \
	ADDQ       $32, R8

// func writeExp16(parts unsafe.Pointer)
TEXT ·writeExp16(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	BITS4(0)
	SPLAT(0x1f, Z22)
	SPLAT(0x100, Z29)
	SPLAT(0x200, Z30)

loop:
	VMOVDQU64 (R12), Z0
	CODES(10)
	PUT(Z29, Z0)
	PUT(Z30, Z0)
	PUT(Z28, Z0)
	TESTL     AX, AX
	JZ        next
	VPMOVWB   Z1, Y3
	ESCAPED(VPCOMPRESSB, VMOVDQU8, Y3, 0)

next:
	VPMOVWB Z0, Y4
	VMOVDQU Y4, (R8)
	ADDQ    $32, R8
	ADDQ    $64, R12
	DECQ    R13
	JNZ     loop
	VZEROUPPER
	RET

// func writeExpB16(parts unsafe.Pointer)
TEXT ·writeExpB16(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	BITS4(0)
	SPLAT(0xff, Z22)

loop:
	VMOVDQU64 (R12), Z0
	CODES(7)
	TESTL     AX, AX
	JZ        next
	VPMOVWB   Z1, Y3
	ESCAPED(VPCOMPRESSB, VMOVDQU8, Y3, 0)

next:
	SIGNED
	ADDQ $64, R12
	DECQ R13
	JNZ  loop
	VZEROUPPER
	RET

// func writeExp32(parts unsafe.Pointer)
TEXT ·writeExp32(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	BITS4(0)
	SPLAT(0xff, Z22)

loop:
	VMOVDQU64    (R12), Z5
	VMOVDQU64    64(R12), Z6
	VPMOVDW      Z5, Y7
	VPMOVDW      Z6, Y8
	VMOVDQU      Y7, (R9)
	VMOVDQU      Y8, 32(R9)
	ADDQ         $64, R9
	VPSRLD       $16, Z5, Z5
	VPSRLD       $16, Z6, Z6
	VPMOVDW      Z5, Y7
	VPMOVDW      Z6, Y8
	VINSERTI64X4 $1, Y8, Z7, Z0
	CODES(7)
	TESTL        AX, AX
	JZ           next
	VPMOVWB      Z1, Y3
	ESCAPED(VPCOMPRESSB, VMOVDQU8, Y3, 0)

next:
	SIGNED
	ADDQ $128, R12
	DECQ R13
	JNZ  loop
	VZEROUPPER
	RET

// QUARTER stores the low bits of the 8 words at a multiple of 64, and makes T their top 16 bits.
#define QUARTER(N, T) \
	VMOVDQU64 (64*N)(R12), Z5       \
	VPMOVQD   Z5, Y6                \
	VMOVDQU   Y6, (32*N)(R10)       \
	VPSRLQ    $32, Z5, Z6           \
	VPMOVQW   Z6, X6                \
	VMOVDQU   X6, (16*N)(R9)        \
	VPSRLQ    $48, Z5, Z5           \
	VPMOVQW   Z5, T

// func writeExp64(parts unsafe.Pointer)
TEXT ·writeExp64(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	BITS4(0)
	SPLAT(0x7ff, Z22)

loop:
	QUARTER(0, X7)
	QUARTER(1, X8)
	QUARTER(2, X9)
	QUARTER(3, X10)
	VINSERTI128  $1, X8, Y7, Y7
	VINSERTI128  $1, X10, Y9, Y9
	VINSERTI64X4 $1, Y9, Z7, Z0
	CODES(4)
	PUT(Z23, Z0)
	PUT(Z24, Z0)
	PUT(Z25, Z0)
	PUT(Z26, Z0)
	PUT(Z28, Z0)
	TESTL        AX, AX
	JZ           next
	ESCAPED(VPCOMPRESSW, VMOVDQU16, Z1, 1)

next:
	ADDQ $256, R12
	ADDQ $128, R10
	ADDQ $64, R9
	DECQ R13
	JNZ  loop
	VZEROUPPER
	RET

// GET reads a plane into K, adds B to the words Z that are in it, and takes the plane away from the marks K5.
#define GET(B, Z) \
	KMOVD  (DI), K1                 \
	ADDQ   $4, DI                   \
	VPADDW B, Z, K1, Z

#define CODE(B) \
	GET(B, Z0)                      \
	KANDD K1, K5, K5

// DECODE makes Z0 the exponents of a group, in their place; Z20 has the base there, and Z23 to Z26 the bits of codes. The marks go to R11.
#define DECODE \
	KXNORD    K5, K5, K5            \
	VMOVDQA64 Z20, Z0               \
	CODE(Z23)                       \
	CMPQ      BX, $2                \
	JLT       decoded               \
	CODE(Z24)                       \
	CMPQ      BX, $3                \
	JLT       decoded               \
	CODE(Z25)                       \
	CMPQ      BX, $4                \
	JLT       decoded               \
	CODE(Z26)                       \
decoded: \
	KMOVD     K5, (R11)             \
	ADDQ      $4, R11

// MANTISSAS adds the sign and the high bits of the mantissa to 8 bits of exponent.
#define MANTISSAS \
	VPMOVZXBW  (R8), Z1             \
	ADDQ       $32, R8              \
	VPSLLW     $8, Z1, Z2           \
	VPANDQ     Z28, Z2, Z2          \
	VPANDQ     Z27, Z1, Z1          \
	VPTERNLOGQ $0xfe, Z1, Z2, Z0

// func readExp16(parts unsafe.Pointer)
TEXT ·readExp16(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	BITS4(10)
	SPLAT(0x100, Z29)
	SPLAT(0x200, Z30)

loop:
	DECODE
	GET(Z29, Z0)
	GET(Z30, Z0)
	GET(Z28, Z0)
	VPMOVZXBW (R8), Z1
	ADDQ      $32, R8
	VPORQ     Z1, Z0, Z0
	VMOVDQU64 Z0, (R12)
	ADDQ      $64, R12
	DECQ      R13
	JNZ       loop
	VZEROUPPER
	RET

// func readExpB16(parts unsafe.Pointer)
TEXT ·readExpB16(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	BITS4(7)

loop:
	DECODE
	MANTISSAS
	VMOVDQU64 Z0, (R12)
	ADDQ      $64, R12
	DECQ      R13
	JNZ       loop
	VZEROUPPER
	RET

// func readExp32(parts unsafe.Pointer)
TEXT ·readExp32(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	BITS4(7)

loop:
	DECODE
	MANTISSAS
	VEXTRACTI64X4 $1, Z0, Y1
	VPMOVZXWD     Y0, Z0
	VPMOVZXWD     Y1, Z1
	VPSLLD        $16, Z0, Z0
	VPSLLD        $16, Z1, Z1
	VPMOVZXWD     (R9), Z2
	VPMOVZXWD     32(R9), Z3
	VPORQ         Z2, Z0, Z0
	VPORQ         Z3, Z1, Z1
	VMOVDQU64     Z0, (R12)
	VMOVDQU64     Z1, 64(R12)
	ADDQ          $64, R9
	ADDQ          $128, R12
	DECQ          R13
	JNZ           loop
	VZEROUPPER
	RET

// WHOLE writes the 8 words at a multiple of 64, whose top 16 bits are T.
#define WHOLE(N, T) \
	VPMOVZXWQ  T, Z4                \
	VPSLLQ     $48, Z4, Z4          \
	VPMOVZXWQ  (16*N)(R9), Z5       \
	VPSLLQ     $32, Z5, Z5          \
	VPMOVZXDQ  (32*N)(R10), Z6      \
	VPTERNLOGQ $0xfe, Z5, Z6, Z4    \
	VMOVDQU64  Z4, (64*N)(R12)

// func readExp64(parts unsafe.Pointer)
TEXT ·readExp64(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	BITS4(4)
	SPLAT(1, Z16)
	SPLAT(2, Z17)
	SPLAT(4, Z18)
	SPLAT(8, Z19)

loop:
	DECODE
	GET(Z16, Z0)
	GET(Z17, Z0)
	GET(Z18, Z0)
	GET(Z19, Z0)
	GET(Z28, Z0)
	VEXTRACTI128  $1, Y0, X1
	VEXTRACTI64X4 $1, Z0, Y2
	VEXTRACTI128  $1, Y2, X3
	WHOLE(0, X0)
	WHOLE(1, X1)
	WHOLE(2, X2)
	WHOLE(3, X3)
	ADDQ          $64, R9
	ADDQ          $128, R10
	ADDQ          $256, R12
	DECQ          R13
	JNZ           loop
	VZEROUPPER
	RET
