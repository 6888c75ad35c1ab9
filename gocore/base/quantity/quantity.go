// Package quantity formats sizes and rates for messages.
//
// Sizes have binary units (1 KiB = 1024 bytes), like memory and budgets. Where single bytes matter the exact number follows. Rates have decimal units
// (1 GB/s = 10^9 bytes a second), like data sheets of disks and links. JSON and the library's interfaces use bytes, and bytes a second.
package quantity

import "fmt"

// Sized has one decimal and a binary unit, in the form of velocpy.quantity.sized: "1.5 KiB".
func Sized(n int64) string {
	v := float64(n)
	if v < 1023.5 {
		return fmt.Sprintf("%.0f B", v)
	}
	for _, unit := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if v /= 1024; v < 1023.95 {
			return fmt.Sprintf("%.1f %s", v, unit)
		}
	}
	return fmt.Sprintf("%.1f EiB", v/1024)
}

// Exact adds the number of bytes, for messages in which single bytes matter: "1.0 MiB (1048577 bytes)".
func Exact(n int64) string {
	if n < 1024 {
		return Sized(n)
	}
	return fmt.Sprintf("%s (%d bytes)", Sized(n), n)
}

// Rate has three digits and a decimal unit, in the form of velocpy.quantity.rated: "55.4 GB/s".
func Rate(bytesPerSecond float64) string {
	for _, unit := range []string{"kB/s", "MB/s", "GB/s"} {
		if bytesPerSecond /= 1000; bytesPerSecond < 999.5 {
			return fmt.Sprintf("%.3g %s", bytesPerSecond, unit)
		}
	}
	return fmt.Sprintf("%.3g TB/s", bytesPerSecond/1000)
}
