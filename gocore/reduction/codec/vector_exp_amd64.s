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
#define LEFT    80(SI)

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

// ESCAPED writes the exponents of the marks AX at R11, without a branch that would be hard to predict; MORE is 0, or 1 for exponents of two bytes.
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
	VPMOVWB   Z1, Y3
	ESCAPED(VPCOMPRESSB, VMOVDQU8, Y3, 0)
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
	VPMOVWB   Z1, Y3
	ESCAPED(VPCOMPRESSB, VMOVDQU8, Y3, 0)
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
	VPMOVWB      Z1, Y3
	ESCAPED(VPCOMPRESSB, VMOVDQU8, Y3, 0)
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
	ESCAPED(VPCOMPRESSW, VMOVDQU16, Z1, 1)
	ADDQ $256, R12
	ADDQ $128, R10
	ADDQ $64, R9
	DECQ R13
	JNZ  loop
	VZEROUPPER
	RET

// Decoding. LEFT is the number of escapes that are left; after the end it is below 0 if they were too few.

// GET reads a plane into K1, adds B to the words Z that are in it.
#define GET(B, Z) \
	KMOVD  (DI), K1                 \
	ADDQ   $4, DI                   \
	VPADDW B, Z, K1, Z

#define CODE(B) \
	GET(B, Z0)                      \
	KANDD K1, K5, K5

// DECODE makes Z0 the exponents of a group, in their place, with those of escapes missing; K5 and AX have the marks of those. Z20 has the base in its place,
// and Z23 to Z26 the bits of codes.
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
	KMOVD     K5, AX

// TAKEN takes the escapes of the marks K5 from those that are left, whose number is in SI, and jumps to short if they are too few.
#define TAKEN \
	POPCNTL AX, CX                  \
	SUBQ    CX, SI                  \
	JLT     short                   \
	BZHIQ   CX, DX, AX              \
	KMOVD   AX, K6

// ESCAPEDBYTES puts escapes of one byte into their words.
#define ESCAPEDBYTES(SHIFT) \
	TAKEN                           \
	VMOVDQU8.Z  (R11), K6, Y3       \
	ADDQ        CX, R11             \
	VPEXPANDB.Z Y3, K5, Y3          \
	VPMOVZXBW   Y3, Z3              \
	VPSLLW      $SHIFT, Z3, Z3      \
	VMOVDQU16   Z3, K5, Z0

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
	MOVQ LEFT, SI
	BITS4(10)
	SPLAT(0x100, Z29)
	SPLAT(0x200, Z30)

loop:
	DECODE
	ESCAPEDBYTES(10)
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

short:
	MOVQ parts+0(FP), AX
	MOVQ SI, 80(AX)
	VZEROUPPER
	RET

// func readExpB16(parts unsafe.Pointer)
TEXT ·readExpB16(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	MOVQ LEFT, SI
	BITS4(7)

loop:
	DECODE
	ESCAPEDBYTES(7)
	MANTISSAS
	VMOVDQU64 Z0, (R12)
	ADDQ      $64, R12
	DECQ      R13
	JNZ       loop

short:
	MOVQ parts+0(FP), AX
	MOVQ SI, 80(AX)
	VZEROUPPER
	RET

// func readExp32(parts unsafe.Pointer)
TEXT ·readExp32(SB), NOSPLIT, $0-8
	MOVQ parts+0(FP), SI
	BEGIN
	MOVQ LEFT, SI
	BITS4(7)

loop:
	DECODE
	ESCAPEDBYTES(7)
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

short:
	MOVQ parts+0(FP), AX
	MOVQ SI, 80(AX)
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
	MOVQ LEFT, SI
	BITS4(4)
	SPLAT(1, Z16)
	SPLAT(2, Z17)
	SPLAT(4, Z18)
	SPLAT(8, Z19)

loop:
	DECODE
	TAKEN
	VMOVDQU16.Z (R11), K6, Z3
	LEAQ        (R11)(CX*2), R11
	VPEXPANDW.Z Z3, K5, Z3
	VPSLLW      $4, Z3, Z3
	VMOVDQU16   Z3, K5, Z0
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

short:
	MOVQ parts+0(FP), AX
	MOVQ SI, 80(AX)
	VZEROUPPER
	RET

// Counting. Z30 has the exponent of infinities.

// LARGEST stores the exponents Z0 of 64 words, and keeps the largest one but Z30 in Z27.
#define LARGEST \
	VMOVDQU64 Z0, (DI)              \
	VPCMPUB   $4, Z30, Z0, K1       \
	VPMAXUB   Z0, Z27, K1, Z27      \
	ADDQ      $64, DI

// WHICH makes AX the largest byte of Z27.
#define WHICH \
	VEXTRACTI64X4 $1, Z27, Y0       \
	VPMAXUB       Y27, Y0, Y0       \
	VEXTRACTI128  $1, Y0, X1        \
	VPMAXUB       X1, X0, X0        \
	VPSRLDQ       $8, X0, X1        \
	VPMAXUB       X1, X0, X0        \
	VPSRLDQ       $4, X0, X1        \
	VPMAXUB       X1, X0, X0        \
	VPSRLDQ       $2, X0, X1        \
	VPMAXUB       X1, X0, X0        \
	VPSRLDQ       $1, X0, X1        \
	VPMAXUB       X1, X0, X0        \
	VPEXTRB       $0, X0, AX

// func exponents16(dst, x unsafe.Pointer, units int, shift, mask uint64) (most int)
TEXT ·exponents16(SB), NOSPLIT, $0-48
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         units+16(FP), CX
	VMOVQ        shift+24(FP), X8
	MOVQ         mask+32(FP), R8
	VPBROADCASTB R8, Z30
	VPXORQ       Z27, Z27, Z27

loop:
	VMOVDQU64    (SI), Z0
	VMOVDQU64    64(SI), Z1
	VPSRLW       X8, Z0, Z0
	VPSRLW       X8, Z1, Z1
	VPMOVWB      Z0, Y0
	VPMOVWB      Z1, Y1
	VINSERTI64X4 $1, Y1, Z0, Z0
	VPANDQ       Z30, Z0, Z0
	LARGEST
	ADDQ         $128, SI
	DECQ         CX
	JNZ          loop
	WHICH
	MOVQ         AX, most+40(FP)
	VZEROUPPER
	RET

// func exponents32(dst, x unsafe.Pointer, units int) (most int)
TEXT ·exponents32(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         units+16(FP), CX
	MOVQ         $0xff, R8
	VPBROADCASTB R8, Z30
	VPXORQ       Z27, Z27, Z27

loop:
	VMOVDQU64    (SI), Z0
	VMOVDQU64    64(SI), Z1
	VMOVDQU64    128(SI), Z2
	VMOVDQU64    192(SI), Z3
	VPSRLD       $23, Z0, Z0
	VPSRLD       $23, Z1, Z1
	VPSRLD       $23, Z2, Z2
	VPSRLD       $23, Z3, Z3
	VPMOVDB      Z0, X0
	VPMOVDB      Z1, X1
	VPMOVDB      Z2, X2
	VPMOVDB      Z3, X3
	VINSERTI128  $1, X1, Y0, Y0
	VINSERTI128  $1, X3, Y2, Y2
	VINSERTI64X4 $1, Y2, Z0, Z0
	LARGEST
	ADDQ         $256, SI
	DECQ         CX
	JNZ          loop
	WHICH
	MOVQ         AX, most+24(FP)
	VZEROUPPER
	RET

// MASK stores the bit N of the differences Z31 of 64 words. DX has the registers of all bytes.
#define MASK(N, AT) \
	VPTESTMB (64<<N)(DX), Z31, K1   \
	KMOVQ    K1, AT(SP)(R9*8)

// VALUE counts, of 512 words, those whose three low bits are N and whose other bits are as Z30 marks. Z27, Z28 and Z29 have bits 2, 1 and 0.
#define VALUE(N, TO) \
	VMOVDQA64  Z27, Z31             \
	VPTERNLOGQ $(1<<N), Z29, Z28, Z31 \
	VPANDQ     Z30, Z31, Z31        \
	VPOPCNTQ   Z31, Z31             \
	VPADDQ     Z31, TO, TO

// TOTAL writes the sum of the words of a register.
#define TOTAL(N, FROM) \
	VEXTRACTI64X4 $1, FROM, Y27     \
	VPADDQ        Z27, FROM, Z27    \
	VEXTRACTI64X2 $1, Y27, X28      \
	VPADDQ        X28, X27, X27     \
	VPSHUFD       $0xee, X27, X28   \
	VPADDQ        X28, X27, X27     \
	VMOVD         X27, (4*N)(DI)

// func count26(counts, exponents unsafe.Pointer, units int, registers unsafe.Pointer, first, mask uint64)
// units is a multiple of 8. counts are those of 24 values, of 0 and of the mask. For 8 units the bits of the values less the first are gathered, of 512 words
// in a register.
TEXT ·count26(SB), NOSPLIT, $448-48
	MOVQ counts+0(FP), DI
	MOVQ exponents+8(FP), SI
	MOVQ units+16(FP), CX
	MOVQ registers+24(FP), DX
	MOVQ first+32(FP), R8
	MOVQ mask+40(FP), R10
	SHLQ $6, R8
	SHLQ $6, R10
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	VPXORQ Z4, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	VPXORQ Z8, Z8, Z8
	VPXORQ Z9, Z9, Z9
	VPXORQ Z10, Z10, Z10
	VPXORQ Z11, Z11, Z11
	VPXORQ Z12, Z12, Z12
	VPXORQ Z13, Z13, Z13
	VPXORQ Z14, Z14, Z14
	VPXORQ Z15, Z15, Z15
	VPXORQ Z16, Z16, Z16
	VPXORQ Z17, Z17, Z17
	VPXORQ Z18, Z18, Z18
	VPXORQ Z19, Z19, Z19
	VPXORQ Z20, Z20, Z20
	VPXORQ Z21, Z21, Z21
	VPXORQ Z22, Z22, Z22
	VPXORQ Z23, Z23, Z23
	VPXORQ Z24, Z24, Z24
	VPXORQ Z25, Z25, Z25

eight:
	XORQ R9, R9

unit:
	VMOVDQU64 (SI), Z30
	VPSUBB    (DX)(R8*1), Z30, Z31
	VPMINUB   (64*31)(DX), Z31, Z31
	MASK(0, 0)
	MASK(1, 64)
	MASK(2, 128)
	MASK(3, 192)
	MASK(4, 256)
	VPTESTNMB Z30, Z30, K1
	KMOVQ     K1, 320(SP)(R9*8)
	VPCMPEQB  (DX)(R10*1), Z30, K1
	KMOVQ     K1, 384(SP)(R9*8)
	ADDQ      $64, SI
	INCQ      R9
	CMPQ      R9, $8
	JNE       unit

	VMOVDQU64  0(SP), Z29
	VMOVDQU64  64(SP), Z28
	VMOVDQU64  128(SP), Z27
	VMOVDQU64  256(SP), Z30
	VPTERNLOGQ $0x5, 192(SP), Z30, Z30
	VALUE(0, Z0)
	VALUE(1, Z1)
	VALUE(2, Z2)
	VALUE(3, Z3)
	VALUE(4, Z4)
	VALUE(5, Z5)
	VALUE(6, Z6)
	VALUE(7, Z7)
	VMOVDQU64  256(SP), Z30
	VPTERNLOGQ $0xa, 192(SP), Z30, Z30
	VALUE(0, Z8)
	VALUE(1, Z9)
	VALUE(2, Z10)
	VALUE(3, Z11)
	VALUE(4, Z12)
	VALUE(5, Z13)
	VALUE(6, Z14)
	VALUE(7, Z15)
	VMOVDQU64  256(SP), Z30
	VPTERNLOGQ $0x50, 192(SP), Z30, Z30
	VALUE(0, Z16)
	VALUE(1, Z17)
	VALUE(2, Z18)
	VALUE(3, Z19)
	VALUE(4, Z20)
	VALUE(5, Z21)
	VALUE(6, Z22)
	VALUE(7, Z23)
	VPOPCNTQ   320(SP), Z31
	VPADDQ     Z31, Z24, Z24
	VPOPCNTQ   384(SP), Z31
	VPADDQ     Z31, Z25, Z25
	SUBQ       $8, CX
	JNZ        eight
	TOTAL(0, Z0)
	TOTAL(1, Z1)
	TOTAL(2, Z2)
	TOTAL(3, Z3)
	TOTAL(4, Z4)
	TOTAL(5, Z5)
	TOTAL(6, Z6)
	TOTAL(7, Z7)
	TOTAL(8, Z8)
	TOTAL(9, Z9)
	TOTAL(10, Z10)
	TOTAL(11, Z11)
	TOTAL(12, Z12)
	TOTAL(13, Z13)
	TOTAL(14, Z14)
	TOTAL(15, Z15)
	TOTAL(16, Z16)
	TOTAL(17, Z17)
	TOTAL(18, Z18)
	TOTAL(19, Z19)
	TOTAL(20, Z20)
	TOTAL(21, Z21)
	TOTAL(22, Z22)
	TOTAL(23, Z23)
	TOTAL(24, Z24)
	TOTAL(25, Z25)
	VZEROUPPER
	RET
