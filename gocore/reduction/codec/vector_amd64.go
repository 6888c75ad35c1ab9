//go:build !race

package codec

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// vectors tells whether the processor has the instructions of the assembly. Tests switch it off to compare the bytes.
var vectors = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512CD &&
	cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512VBMI2 && cpu.X86.HasAVX512GFNI && cpu.X86.HasAVX512VPOPCNTDQ && cpu.X86.HasBMI2 && cpu.X86.HasPOPCNT

// vectorBytes is the length of a register. Only whole registers of words are worked on.
const vectorBytes = 64

func begin(p []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(p)) }
