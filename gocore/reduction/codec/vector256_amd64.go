//go:build !race

package codec

import "golang.org/x/sys/cpu"

// vectors256 tells whether the processor has AVX2, for decoders that the AVX-512 assembly does not replace. Tests switch it off to compare the bytes.
var vectors256 = cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT
