//go:build !race

#include "textflag.h"

// AHEAD is how far in front of the reads the next lines are asked for.
#define AHEAD 1024

// func stream256(dst, src unsafe.Pointer, blocks int)
// Blocks of 256 bytes with stores that bypass the cache; dst is a multiple of 32.
TEXT ·stream256(SB), NOSPLIT, $0-24
	MOVQ  dst+0(FP), DI
	MOVQ  src+8(FP), SI
	MOVQ  blocks+16(FP), CX
	TESTQ CX, CX
	JZ    done

loop:
	PREFETCHT0 (AHEAD)(SI)
	PREFETCHT0 (AHEAD+64)(SI)
	VMOVDQU    (SI), Y0
	VMOVDQU    32(SI), Y1
	VMOVDQU    64(SI), Y2
	VMOVDQU    96(SI), Y3
	PREFETCHT0 (AHEAD+128)(SI)
	PREFETCHT0 (AHEAD+192)(SI)
	VMOVDQU    128(SI), Y4
	VMOVDQU    160(SI), Y5
	VMOVDQU    192(SI), Y6
	VMOVDQU    224(SI), Y7
	VMOVNTDQ   Y0, (DI)
	VMOVNTDQ   Y1, 32(DI)
	VMOVNTDQ   Y2, 64(DI)
	VMOVNTDQ   Y3, 96(DI)
	VMOVNTDQ   Y4, 128(DI)
	VMOVNTDQ   Y5, 160(DI)
	VMOVNTDQ   Y6, 192(DI)
	VMOVNTDQ   Y7, 224(DI)
	ADDQ       $256, SI
	ADDQ       $256, DI
	DECQ       CX
	JNZ        loop
	SFENCE

done:
	VZEROUPPER
	RET
