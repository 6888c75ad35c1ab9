//go:build !race

package journal

const share = 1
