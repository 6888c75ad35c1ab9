//go:build !race

#include "textflag.h"
#include "transpose256_amd64.h"

// Decoding of mode Exp with AVX2, for whole groups of 32 words. SI has the address of an expParts.

#define PLANES  0(SI)
#define BYTES   8(SI)
#define HALVES  16(SI)
#define WORDS   24(SI)
#define PLAIN   40(SI)
#define GROUPS  48(SI)
#define BITS    56(SI)
#define BASE    64(SI)
#define ESCAPE  72(SI)
#define LEFT    80(SI)
#define LEAST   88(SI)

// SPLAT repeats 4 bytes.
#define SPLAT(N, X, Y) \
	MOVL         $N, AX             \
	VMOVD        AX, X              \
	VPBROADCASTD X, Y

// PREPARE loads the arguments. The planes of a group are those of its codes, and REST more. DX is their length, and Y12
// keeps those bytes.
#define PREPARE(REST) \
	CONSTANTS                       \
	VMOVDQU      zip256<>(SB), Y11  \
	MOVQ         BITS, DX           \
	ADDQ         $REST, DX          \
	SHLQ         $2, DX             \
	SUBQ         DX, R9             \
	VMOVDQU      (R9), Y12          \
	MOVQ         PLANES, DI         \
	MOVQ         BYTES, R8          \
	MOVQ         HALVES, R9         \
	LEAQ         ·shuffles(SB), R10 \
	MOVQ         LEFT, BX           \
	MOVQ         PLAIN, R12         \
	MOVQ         GROUPS, R13        \
	VPBROADCASTB ESCAPE, Y8         \
	VPBROADCASTB BASE, Y9

// PLANES32 makes Y0 the bytes of 32 words from the planes of a group.
#define PLANES32 \
	VMOVDQU (DI), Y0                \
	VPAND   Y12, Y0, Y0             \
	ADDQ    DX, DI                  \
	BYTES32(Y0, Y1)

// NEXT8 makes X the next escapes at the places of the marks in the low byte of AX, which it moves out.
#define NEXT8(X) \
	MOVBLZX AX, CX                  \
	VMOVQ   (R11), X                \
	VPSHUFB (R10)(CX*8), X, X       \
	POPCNTL CX, CX                  \
	ADDQ    CX, R11                 \
	SHRL    $8, AX

// EXPONENTS adds the base to the codes C, and replaces the escapes among them by the next exponents. It jumps to end if fewer escapes are left than the
// code may load, or than the group has. Y1, Y3, Y4 and Y5 are lost.
#define EXPONENTS(C) \
	CMPQ        BX, LEAST           \
	JLT         end                 \
	VPCMPEQB    Y8, C, Y5           \
	VPMOVMSKB   Y5, AX              \
	POPCNTL     AX, CX              \
	CMPQ        BX, CX              \
	JLT         end                 \
	SUBQ        CX, BX              \
	VPADDB      Y9, C, C            \
	NEXT8(X1)                       \
	NEXT8(X3)                       \
	VPUNPCKLQDQ X3, X1, X1          \
	NEXT8(X3)                       \
	NEXT8(X4)                       \
	VPUNPCKLQDQ X4, X3, X3          \
	VINSERTI128 $1, X3, Y1, Y1      \
	VPBLENDVB   Y5, Y1, C, C

// DONE ends a function: it stores how many groups and escapes are left.
#define DONE \
	MOVQ R13, GROUPS                \
	MOVQ BX, LEFT                   \
	VZEROUPPER                      \
	RET

// TOPS makes Y0 and Y1 the top 16 bits of words from the bytes LOW and HIGH: words 0 to 7 and 16 to 23, and the others.
#define TOPS(LOW, HIGH) \
	VPUNPCKLBW HIGH, LOW, Y0        \
	VPUNPCKHBW HIGH, LOW, Y1

// TOPS8 does it for 8 bits of exponent. Y7 has 0x7f in each byte.
#define TOPS8 \
	PLANES32                        \
	EXPONENTS(Y0)                   \
	VMOVDQU (R8), Y2                \
	ADDQ    $32, R8                 \
	VPSRLW  $1, Y0, Y3              \
	VPAND   Y7, Y3, Y3              \
	VPANDN  Y2, Y7, Y4              \
	VPOR    Y4, Y3, Y3              \
	VPSLLW  $7, Y0, Y4              \
	VPANDN  Y4, Y7, Y4              \
	VPAND   Y7, Y2, Y2              \
	VPOR    Y4, Y2, Y2              \
	TOPS(Y2, Y3)

// STORE2 writes words of two bytes, whose order is that of TOPS.
#define STORE2 \
	VMOVDQU      X0, (R12)          \
	VMOVDQU      X1, 16(R12)        \
	VEXTRACTI128 $1, Y0, 32(R12)    \
	VEXTRACTI128 $1, Y1, 48(R12)    \
	ADDQ         $64, R12

// BEHIND16 makes Y0 to Y3 four bytes of words: two from the halves, and above those Y0 and Y1 of TOPS. Y4 and Y5 are lost. Y0 has words 0 to 3 and 16
// to 19, Y1 those four behind them, and so on.
#define BEHIND16 \
	VMOVDQU     (R9), X4             \
	VINSERTI128 $1, 32(R9), Y4, Y4   \
	VMOVDQU     16(R9), X5           \
	VINSERTI128 $1, 48(R9), Y5, Y5   \
	ADDQ        $64, R9              \
	VPUNPCKLWD  Y1, Y5, Y2           \
	VPUNPCKHWD  Y1, Y5, Y3           \
	VPUNPCKHWD  Y0, Y4, Y1           \
	VPUNPCKLWD  Y0, Y4, Y0

// The two low bits of each byte.
DATA low2<>+0(SB)/8, $0x0303030303030303
GLOBL low2<>(SB), RODATA|NOPTR, $8

// func decodeExp16(parts, escapes unsafe.Pointer)
TEXT ·decodeExp16(SB), NOSPLIT, $0-16
	MOVQ parts+0(FP), SI
	MOVQ escapes+8(FP), R11
	PREPARE(3)
	VMOVQ BITS, X6
	SPLAT(0x7f7f7f7f, X7, Y7)

loop:
	PLANES32
	VPAND        Y8, Y0, Y2
	EXPONENTS(Y2)
	VPSLLW       $2, Y2, Y2
	VPSRLW       X6, Y0, Y0
	VPBROADCASTQ low2<>(SB), Y3
	VPAND        Y3, Y0, Y3
	VPOR         Y3, Y2, Y2
	VPSLLW       $5, Y0, Y0
	VPANDN       Y0, Y7, Y0
	VPOR         Y0, Y2, Y2
	VMOVDQU      (R8), Y3
	ADDQ         $32, R8
	TOPS(Y3, Y2)
	STORE2
	DECQ         R13
	JNZ          loop

end:
	DONE

// func decodeExpB16(parts, escapes unsafe.Pointer)
TEXT ·decodeExpB16(SB), NOSPLIT, $0-16
	MOVQ parts+0(FP), SI
	MOVQ escapes+8(FP), R11
	PREPARE(0)
	SPLAT(0x7f7f7f7f, X7, Y7)

loop:
	TOPS8
	STORE2
	DECQ R13
	JNZ  loop

end:
	DONE

// STORE4 writes words of four bytes, whose order is that of BEHIND16.
#define STORE4(N, X, Y) \
	VMOVDQU      X, (16*N)(R12)     \
	VEXTRACTI128 $1, Y, (16*N+64)(R12)

// func decodeExp32(parts, escapes unsafe.Pointer)
TEXT ·decodeExp32(SB), NOSPLIT, $0-16
	MOVQ parts+0(FP), SI
	MOVQ escapes+8(FP), R11
	PREPARE(0)
	SPLAT(0x7f7f7f7f, X7, Y7)

loop:
	TOPS8
	BEHIND16
	STORE4(0, X0, Y0)
	STORE4(1, X1, Y1)
	STORE4(2, X2, Y2)
	STORE4(3, X3, Y3)
	ADDQ $128, R12
	DECQ R13
	JNZ  loop

end:
	DONE

// TOPS11 makes CODES, codes in lanes of 16 bits, the top 16 bits of words of eight bytes. REST has four bits of mantissa and the sign, and is lost, as T.
#define TOPS11(CODES, REST, T) \
	VPADDW Y9, CODES, CODES         \
	VPSLLW $4, CODES, CODES         \
	VPAND  Y7, REST, T              \
	VPOR   T, CODES, CODES          \
	VPSLLW $11, REST, REST          \
	VPAND  Y6, REST, REST           \
	VPOR   REST, CODES, CODES

// STORE8 writes words of eight bytes, whose upper four bytes are H in the order of BEHIND16.
#define STORE8(N, H) \
	VMOVDQU      (16*N)(R10), X4    \
	VINSERTI128  $1, (16*N+64)(R10), Y4, Y4 \
	VPUNPCKLDQ   H, Y4, Y5          \
	VPUNPCKHDQ   H, Y4, Y4          \
	VMOVDQU      X5, (32*N)(R12)    \
	VMOVDQU      X4, (32*N+16)(R12) \
	VEXTRACTI128 $1, Y5, (32*N+128)(R12) \
	VEXTRACTI128 $1, Y4, (32*N+144)(R12)

// func decodeExp64(parts, marks unsafe.Pointer)
// It only marks the words whose exponents are escapes.
TEXT ·decodeExp64(SB), NOSPLIT, $0-16
	MOVQ parts+0(FP), SI
	MOVQ marks+8(FP), R11
	PREPARE(0)
	MOVQ         WORDS, R10
	VPBROADCASTW BASE, Y9
	SPLAT(0x80008000, X6, Y6)
	SPLAT(0x000f000f, X7, Y7)

loop:
	PLANES32
	VPCMPEQB   Y8, Y0, Y1
	VPMOVMSKB  Y1, AX
	MOVL       AX, (R11)
	ADDQ       $4, R11
	VMOVDQU    (DI), Y1
	VPAND      prefix256<>+44(SB), Y1, Y1 // 5 planes
	ADDQ       $20, DI
	BYTES32(Y1, Y2)
	VPXOR      Y5, Y5, Y5
	VPUNPCKLBW Y5, Y0, Y2
	VPUNPCKHBW Y5, Y0, Y3
	VPUNPCKLBW Y5, Y1, Y4
	VPUNPCKHBW Y5, Y1, Y5
	TOPS11(Y2, Y4, Y0)
	TOPS11(Y3, Y5, Y0)
	VMOVDQA    Y2, Y0
	VMOVDQA    Y3, Y1
	BEHIND16
	STORE8(0, Y0)
	STORE8(1, Y1)
	STORE8(2, Y2)
	STORE8(3, Y3)
	ADDQ       $128, R10
	ADDQ       $256, R12
	DECQ       R13
	JNZ        loop
	VZEROUPPER
	RET
