// What the AVX2 decoders share: constants, and the transposition of bits.

// 64 bytes of ones and 64 zeros. 64 bytes from 64-n on keep the first n bytes of a register.
DATA prefix256<>+0(SB)/8, $-1
DATA prefix256<>+8(SB)/8, $-1
DATA prefix256<>+16(SB)/8, $-1
DATA prefix256<>+24(SB)/8, $-1
DATA prefix256<>+32(SB)/8, $-1
DATA prefix256<>+40(SB)/8, $-1
DATA prefix256<>+48(SB)/8, $-1
DATA prefix256<>+56(SB)/8, $-1
DATA prefix256<>+64(SB)/8, $0
DATA prefix256<>+72(SB)/8, $0
DATA prefix256<>+80(SB)/8, $0
DATA prefix256<>+88(SB)/8, $0
DATA prefix256<>+96(SB)/8, $0
DATA prefix256<>+104(SB)/8, $0
DATA prefix256<>+112(SB)/8, $0
DATA prefix256<>+120(SB)/8, $0
GLOBL prefix256<>(SB), RODATA|NOPTR, $128

// VPSHUFB with it transposes the 4x4 bytes of 16.
DATA square256<>+0(SB)/8, $0x0d0905010c080400
DATA square256<>+8(SB)/8, $0x0f0b07030e0a0602
GLOBL square256<>(SB), RODATA|NOPTR, $16

// VPERMD with it brings each double word of the low half and the one of the high half at the same place together.
DATA zip256<>+0(SB)/8, $0x0000000400000000
DATA zip256<>+8(SB)/8, $0x0000000500000001
DATA zip256<>+16(SB)/8, $0x0000000600000002
DATA zip256<>+24(SB)/8, $0x0000000700000003
GLOBL zip256<>(SB), RODATA|NOPTR, $32

// VPERMD with it moves the low halves of quad words to the low half of the register, and the high halves to the high one.
DATA unzip256<>+0(SB)/8, $0x0000000200000000
DATA unzip256<>+8(SB)/8, $0x0000000600000004
DATA unzip256<>+16(SB)/8, $0x0000000300000001
DATA unzip256<>+24(SB)/8, $0x0000000700000005
GLOBL unzip256<>(SB), RODATA|NOPTR, $32

// Bits that a transposition of 8x8 bits exchanges with those 28, 14 and 7 above.
DATA bits28<>+0(SB)/8, $0x00000000f0f0f0f0
GLOBL bits28<>(SB), RODATA|NOPTR, $8
DATA bits14<>+0(SB)/8, $0x0000cccc0000cccc
GLOBL bits14<>(SB), RODATA|NOPTR, $8
DATA bits7<>+0(SB)/8, $0x00aa00aa00aa00aa
GLOBL bits7<>(SB), RODATA|NOPTR, $8

// EXCHANGE exchanges the bits MASK of A with those N above; T is lost.
#define EXCHANGE(N, MASK, A, T) \
	VPSRLQ $N, A, T                 \
	VPXOR  A, T, T                  \
	VPAND  MASK, T, T               \
	VPXOR  T, A, A                  \
	VPSLLQ $N, T, T                 \
	VPXOR  T, A, A

// TRANSPOSE transposes the 8x8 bits of each quad word of A; T is lost. Y13, Y14 and Y15 are set by CONSTANTS.
#define TRANSPOSE(A, T) \
	EXCHANGE(28, Y13, A, T)         \
	EXCHANGE(14, Y14, A, T)         \
	EXCHANGE(7, Y15, A, T)

#define CONSTANTS \
	LEAQ           prefix256<>+64(SB), R9 \
	VBROADCASTI128 square256<>(SB), Y10   \
	VPBROADCASTQ   bits28<>(SB), Y13      \
	VPBROADCASTQ   bits14<>(SB), Y14      \
	VPBROADCASTQ   bits7<>(SB), Y15

// BYTES32 makes A the bytes of 32 words from their 8 planes of 4 bytes each; T is lost. Y11 is zip256.
#define BYTES32(A, T) \
	VPSHUFB Y10, A, A               \
	VPERMD  A, Y11, A               \
	TRANSPOSE(A, T)

// WORDS8 makes A 8 words of 4 bytes from their 32 planes of a byte each; T is lost. Y12 is unzip256.
#define WORDS8(A, T) \
	TRANSPOSE(A, T)                 \
	VPERMD  A, Y12, A               \
	VPSHUFB Y10, A, A
