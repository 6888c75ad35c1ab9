//go:build !race

#include "textflag.h"

// The stripes of XXH3-64 over whole 1024-byte blocks, with every stripe also stored to dst.
//
// A stripe is 64 bytes; stripe i of a block is mixed with the secret from byte 8*i, and the end of a
// block scrambles the accumulators with the secret from byte 128. Two sums are kept apart during a
// block (data in one, products in the other) to shorten the chain of additions.

DATA prime32<>+0(SB)/8, $0x9E3779B1
GLOBL prime32<>(SB), RODATA|NOPTR, $8

// R9 points to the lines that are prefetched: those of the next block, or wherever the caller says.

// Without a destination there are no stores. Plain stores use the values loaded for the sums. Stores that bypass the cache have to be aligned: they
// go some bytes ahead of the stripes, from R8 to DI, and load their bytes themselves.
#define NONE(off)
#define CACHED512(off) VMOVDQU64 Z22, off(DI)
#define STREAM512(off) \
	VMOVDQU64 off(R8), Z25 \
	VMOVNTDQ  Z25, off(DI)

#define STRIPE512(off, key, STORE) \
	PREFETCHT0 off(R9)         \
	VMOVDQU64  off(SI), Z22    \
	STORE(off)                 \
	VPXORQ     key, Z22, Z23   \
	VPSRLQ     $32, Z23, Z24   \
	VPSHUFD    $0x4E, Z22, Z22 \
	VPMULUDQ   Z23, Z24, Z23   \
	VPADDQ     Z22, Z1, Z1     \
	VPADDQ     Z23, Z2, Z2

#define BLOCK512(STORE) \
	VPXORQ   Z2, Z2, Z2 \
	STRIPE512(0, Z4, STORE) \
	STRIPE512(64, Z5, STORE) \
	STRIPE512(128, Z6, STORE) \
	STRIPE512(192, Z7, STORE) \
	STRIPE512(256, Z8, STORE) \
	STRIPE512(320, Z9, STORE) \
	STRIPE512(384, Z10, STORE) \
	STRIPE512(448, Z11, STORE) \
	STRIPE512(512, Z12, STORE) \
	STRIPE512(576, Z13, STORE) \
	STRIPE512(640, Z14, STORE) \
	STRIPE512(704, Z15, STORE) \
	STRIPE512(768, Z16, STORE) \
	STRIPE512(832, Z17, STORE) \
	STRIPE512(896, Z18, STORE) \
	STRIPE512(960, Z19, STORE) \
	VPADDQ   Z2, Z1, Z1   \
	VPSRLQ   $47, Z1, Z22 \
	VPXORQ   Z1, Z22, Z22 \
	VPXORQ   Z20, Z22, Z22 \
	VPSRLQ   $32, Z22, Z23 \
	VPMULUDQ Z0, Z22, Z22 \
	VPMULUDQ Z0, Z23, Z23 \
	VPSLLQ   $32, Z23, Z23 \
	VPADDQ   Z22, Z23, Z1 \
	ADDQ     $1024, SI    \
	ADDQ     $1024, R8    \
	ADDQ     $1024, R9    \
	ADDQ     $1024, DI

// func blocks512(sums *[8]uint64, dst, src unsafe.Pointer, blocks int, secret *byte, ahead int, next uintptr)
TEXT ·blocks512(SB), NOSPLIT, $0-56
	MOVQ         sums+0(FP), AX
	MOVQ         dst+8(FP), DI
	MOVQ         src+16(FP), SI
	MOVQ         blocks+24(FP), CX
	MOVQ         secret+32(FP), DX
	MOVQ         ahead+40(FP), BX
	MOVQ         next+48(FP), R9
	VPBROADCASTQ prime32<>(SB), Z0
	VMOVDQU64    (AX), Z1
	VMOVDQU64    (DX), Z4
	VMOVDQU64    8(DX), Z5
	VMOVDQU64    16(DX), Z6
	VMOVDQU64    24(DX), Z7
	VMOVDQU64    32(DX), Z8
	VMOVDQU64    40(DX), Z9
	VMOVDQU64    48(DX), Z10
	VMOVDQU64    56(DX), Z11
	VMOVDQU64    64(DX), Z12
	VMOVDQU64    72(DX), Z13
	VMOVDQU64    80(DX), Z14
	VMOVDQU64    88(DX), Z15
	VMOVDQU64    96(DX), Z16
	VMOVDQU64    104(DX), Z17
	VMOVDQU64    112(DX), Z18
	VMOVDQU64    120(DX), Z19
	VMOVDQU64    128(DX), Z20
	TESTQ        CX, CX
	JZ           done512
	TESTQ        DI, DI
	JZ           hash512
	TESTQ        BX, BX
	JGE          stream512

cached512:
	BLOCK512(CACHED512)
	DECQ CX
	JNZ  cached512
	JMP  done512

hash512:
	BLOCK512(NONE)
	DECQ CX
	JNZ  hash512
	JMP  done512

stream512:
	LEAQ (SI)(BX*1), R8
	ADDQ BX, DI

next512:
	BLOCK512(STREAM512)
	DECQ CX
	JNZ  next512

done512:
	VMOVDQU64 Z1, (AX)
	VZEROUPPER
	RET

// func stripes512(sums *[8]uint64, data unsafe.Pointer, stripes int, secret *byte)
TEXT ·stripes512(SB), NOSPLIT, $0-32
	MOVQ      sums+0(FP), AX
	MOVQ      data+8(FP), SI
	MOVQ      stripes+16(FP), CX
	MOVQ      secret+24(FP), DX
	VMOVDQU64 (AX), Z1
	TESTQ     CX, CX
	JZ        mixed512

mix512:
	VMOVDQU64 (SI), Z22
	VPXORQ    (DX), Z22, Z23
	VPSRLQ    $32, Z23, Z24
	VPSHUFD   $0x4E, Z22, Z22
	VPMULUDQ  Z23, Z24, Z23
	VPADDQ    Z22, Z1, Z1
	VPADDQ    Z23, Z1, Z1
	ADDQ      $64, SI
	ADDQ      $8, DX
	DECQ      CX
	JNZ       mix512

mixed512:
	VMOVDQU64 Z1, (AX)
	VZEROUPPER
	RET

// HALF256 mixes 32 bytes: accumulator A for the data, P for the products.
#define CACHED256(off) VMOVDQU Y4, off(DI)
#define STREAM256(off) \
	VMOVDQU  off(R8), Y8 \
	VMOVNTDQ Y8, off(DI)

#define HALF256(off, key, A, P, STORE) \
	VMOVDQU  off(SI), Y4     \
	STORE(off)               \
	VPXOR    key(DX), Y4, Y5 \
	VPSRLQ   $32, Y5, Y6     \
	VPSHUFD  $0x4E, Y4, Y4   \
	VPMULUDQ Y5, Y6, Y5      \
	VPADDQ   Y4, A, A        \
	VPADDQ   Y5, P, P

#define STRIPE256(off, key, STORE) \
	PREFETCHT0 off(R9)         \
	HALF256(off, key, Y0, Y2, STORE) \
	HALF256(off+32, key+32, Y1, Y3, STORE)

#define SCRAMBLE256(A, P, key) \
	VPADDQ   P, A, A       \
	VPSRLQ   $47, A, Y4    \
	VPXOR    A, Y4, Y4     \
	VPXOR    key(DX), Y4, Y4 \
	VPSRLQ   $32, Y4, Y5   \
	VPMULUDQ Y7, Y4, Y4    \
	VPMULUDQ Y7, Y5, Y5    \
	VPSLLQ   $32, Y5, Y5   \
	VPADDQ   Y4, Y5, A

#define BLOCK256(STORE) \
	VPXOR Y2, Y2, Y2 \
	VPXOR Y3, Y3, Y3 \
	STRIPE256(0, 0, STORE) \
	STRIPE256(64, 8, STORE) \
	STRIPE256(128, 16, STORE) \
	STRIPE256(192, 24, STORE) \
	STRIPE256(256, 32, STORE) \
	STRIPE256(320, 40, STORE) \
	STRIPE256(384, 48, STORE) \
	STRIPE256(448, 56, STORE) \
	STRIPE256(512, 64, STORE) \
	STRIPE256(576, 72, STORE) \
	STRIPE256(640, 80, STORE) \
	STRIPE256(704, 88, STORE) \
	STRIPE256(768, 96, STORE) \
	STRIPE256(832, 104, STORE) \
	STRIPE256(896, 112, STORE) \
	STRIPE256(960, 120, STORE) \
	SCRAMBLE256(Y0, Y2, 128) \
	SCRAMBLE256(Y1, Y3, 160) \
	ADDQ $1024, SI \
	ADDQ $1024, R8 \
	ADDQ $1024, R9 \
	ADDQ $1024, DI

// func blocks256(sums *[8]uint64, dst, src unsafe.Pointer, blocks int, secret *byte, ahead int, next uintptr)
TEXT ·blocks256(SB), NOSPLIT, $0-56
	MOVQ         sums+0(FP), AX
	MOVQ         dst+8(FP), DI
	MOVQ         src+16(FP), SI
	MOVQ         blocks+24(FP), CX
	MOVQ         secret+32(FP), DX
	MOVQ         ahead+40(FP), BX
	MOVQ         next+48(FP), R9
	VPBROADCASTQ prime32<>(SB), Y7
	VMOVDQU      (AX), Y0
	VMOVDQU      32(AX), Y1
	TESTQ        CX, CX
	JZ           done256
	TESTQ        DI, DI
	JZ           hash256
	TESTQ        BX, BX
	JGE          stream256

cached256:
	BLOCK256(CACHED256)
	DECQ CX
	JNZ  cached256
	JMP  done256

hash256:
	BLOCK256(NONE)
	DECQ CX
	JNZ  hash256
	JMP  done256

stream256:
	LEAQ (SI)(BX*1), R8
	ADDQ BX, DI

next256:
	BLOCK256(STREAM256)
	DECQ CX
	JNZ  next256

done256:
	VMOVDQU Y0, (AX)
	VMOVDQU Y1, 32(AX)
	VZEROUPPER
	RET

// func stripes256(sums *[8]uint64, data unsafe.Pointer, stripes int, secret *byte)
TEXT ·stripes256(SB), NOSPLIT, $0-32
	MOVQ    sums+0(FP), AX
	MOVQ    data+8(FP), SI
	MOVQ    stripes+16(FP), CX
	MOVQ    secret+24(FP), DX
	VMOVDQU (AX), Y0
	VMOVDQU 32(AX), Y1
	TESTQ   CX, CX
	JZ      mixed256

mix256:
	HALF256(0, 0, Y0, Y0, NONE)
	HALF256(32, 32, Y1, Y1, NONE)
	ADDQ $64, SI
	ADDQ $8, DX
	DECQ CX
	JNZ  mix256

mixed256:
	VMOVDQU Y0, (AX)
	VMOVDQU Y1, 32(AX)
	VZEROUPPER
	RET

// func fence()
// Orders stores that bypass the cache before later ones.
TEXT ·fence(SB), NOSPLIT, $0-0
	SFENCE
	RET
