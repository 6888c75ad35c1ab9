//go:build !race

#include "textflag.h"

// func stream256(dst, src unsafe.Pointer, blocks int, next uintptr)
// Copies blocks of 256 bytes with stores that bypass the cache; dst is a multiple of 32. Prefetches the lines from next on.
TEXT ·stream256(SB), NOSPLIT, $0-32
	MOVQ  dst+0(FP), DI
	MOVQ  src+8(FP), SI
	MOVQ  blocks+16(FP), CX
	MOVQ  next+24(FP), R9
	TESTQ CX, CX
	JZ    done

loop:
	PREFETCHT0 (R9)
	PREFETCHT0 64(R9)
	VMOVDQU    (SI), Y0
	VMOVDQU    32(SI), Y1
	VMOVDQU    64(SI), Y2
	VMOVDQU    96(SI), Y3
	PREFETCHT0 128(R9)
	PREFETCHT0 192(R9)
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
	ADDQ       $256, R9
	DECQ       CX
	JNZ        loop

done:
	VZEROUPPER
	RET

// func fence()
// Orders stores that bypass the cache before later ones.
TEXT ·fence(SB), NOSPLIT, $0-0
	SFENCE
	RET
