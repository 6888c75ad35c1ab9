package archive

import (
	"fmt"
	"strconv"
	"strings"

	"velocpy/gocore/tier/disk/durable"
)

const partPrefix = "rank "

// PartName is the name, in an archive, of the history with a rank's parts of a history.
func PartName(rank int, history string) string {
	return fmt.Sprintf("%s%d/%s", partPrefix, rank, history)
}

// ParsePartName is the inverse of PartName; false if the name is none of a history of parts.
func ParsePartName(name string) (rank int, history string, ok bool) {
	rest, ok := strings.CutPrefix(name, partPrefix)
	if !ok {
		return 0, "", false
	}
	digits, history, ok := strings.Cut(rest, "/")
	if !ok {
		return 0, "", false
	}
	rank, err := strconv.Atoi(digits)
	if err != nil || rank < 0 || PartName(rank, history) != name {
		return 0, "", false
	}
	return rank, history, true
}

// NamesOf are the names that the histories of a rank have outside of an archive.
func NamesOf(rank int) durable.Names {
	return func(name string) (history string, ok bool) {
		of, history, ok := ParsePartName(name)
		return history, ok && of == rank
	}
}
