/* The functions that go-nvml calls: each jumps through its entry of velocpy_nvml_table (table.c), in the order of names.h. */
	.text
	.macro forward name
	.globl \name
	.hidden \name
	.type \name, %function
\name:
#if defined(__x86_64__)
	endbr64
	jmp *velocpy_nvml_table+8*\@(%rip) /* \@: how many macros were expanded before; a pointer has 8 bytes */
#elif defined(__aarch64__)
	adrp x16, velocpy_nvml_table+8*\@
	ldr x16, [x16, :lo12:velocpy_nvml_table+8*\@]
	br x16
#else
#error "no jump through a table is written for this architecture"
#endif
	.size \name, .-\name
	.endm
#define NVML_FUNCTION(name) forward name
#include "names.h"
	.section .note.GNU-stack,"",%progbits
