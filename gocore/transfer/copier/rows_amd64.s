//go:build !race

#include "textflag.h"

// func rows256(dst, src unsafe.Pointer, n, rows, dstStep, srcStep, ahead int64)
// Rows of n >= 32 bytes; the last 32 of a row may overlap those before them. Lines at the distance ahead of the reads are prefetched; 0: none.
TEXT ·rows256(SB), NOSPLIT, $0-56
	MOVQ  dst+0(FP), DI
	MOVQ  src+8(FP), SI
	MOVQ  n+16(FP), DX
	MOVQ  rows+24(FP), CX
	MOVQ  dstStep+32(FP), R8
	MOVQ  srcStep+40(FP), R9
	MOVQ  ahead+48(FP), R12
	ADDQ  SI, R12
	LEAQ  -128(DX), R10
	LEAQ  -32(DX), R11
	TESTQ CX, CX
	JZ    done

row:
	VMOVDQU (SI)(R11*1), Y4
	XORQ    AX, AX
	CMPQ    AX, R10
	JGT     few

many:
	PREFETCHT0 (R12)(AX*1)
	PREFETCHT0 64(R12)(AX*1)
	VMOVDQU (SI)(AX*1), Y0
	VMOVDQU 32(SI)(AX*1), Y1
	VMOVDQU 64(SI)(AX*1), Y2
	VMOVDQU 96(SI)(AX*1), Y3
	VMOVDQU Y0, (DI)(AX*1)
	VMOVDQU Y1, 32(DI)(AX*1)
	VMOVDQU Y2, 64(DI)(AX*1)
	VMOVDQU Y3, 96(DI)(AX*1)
	ADDQ    $128, AX
	CMPQ    AX, R10
	JLE     many

few:
	CMPQ    AX, R11
	JGE     last
	VMOVDQU (SI)(AX*1), Y0
	VMOVDQU Y0, (DI)(AX*1)
	ADDQ    $32, AX
	JMP     few

last:
	VMOVDQU Y4, (DI)(R11*1)
	ADDQ    R8, DI
	ADDQ    R9, SI
	ADDQ    R9, R12
	DECQ    CX
	JNZ     row

done:
	VZEROUPPER
	RET
