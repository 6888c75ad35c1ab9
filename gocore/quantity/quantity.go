// Package quantity writes numbers of bytes for people, in the one kind of unit that messages and commands use.
package quantity

import "fmt"

// Sized has one decimal and a binary unit, as velocpy.quantity.sized writes it: "1.5 KiB".
func Sized(n int64) string {
	v := float64(n)
	if v < 1023.5 {
		return fmt.Sprintf("%.0f B", v)
	}
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if v /= 1024; v < 1023.95 {
			return fmt.Sprintf("%.1f %s", v, unit)
		}
	}
	return fmt.Sprintf("%.1f TiB", v/1024)
}

// Exact has the number of bytes too, where a few of them decide: "1.0 MiB (1048577 bytes)".
func Exact(n int64) string {
	if n < 1024 {
		return Sized(n)
	}
	return fmt.Sprintf("%s (%d bytes)", Sized(n), n)
}
