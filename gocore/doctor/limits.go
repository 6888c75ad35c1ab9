package doctor

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits is what the system lets the process have.
type Limits struct {
	Locked    int64  // bytes that it may lock (RLIMIT_MEMLOCK); -1: no limit
	Left      int64  // bytes of memory that the tightest cgroup still has for it; -1: no limit, or unknown
	HugePages string // always, madvise, never; empty: unknown
}

// ReadLimits asks the system; read returns the contents of a file.
func ReadLimits(read func(name string) ([]byte, error)) Limits {
	l := Limits{Locked: -1, Left: -1}
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) == nil && r.Cur <= math.MaxInt64 {
		l.Locked = int64(r.Cur)
	}
	if text, err := read("/proc/self/cgroup"); err == nil {
		l.Left = left(read, string(text))
	}
	if text, err := read("/sys/kernel/mm/transparent_hugepage/enabled"); err == nil {
		l.HugePages = chosen(string(text))
	}
	return l
}

// chosen is the word in brackets.
func chosen(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	word, _, found := strings.Cut(rest, "]")
	if !found {
		return ""
	}
	return word
}

// left looks at every cgroup from the process's own up to the root, in either version of the hierarchy.
func left(read func(string) ([]byte, error), membership string) int64 {
	least := int64(-1)
	for line := range strings.Lines(membership) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root, limit, use := "/sys/fs/cgroup", "memory.max", "memory.current"
		if parts[1] != "" {
			if !strings.Contains(","+parts[1]+",", ",memory,") {
				continue
			}
			root, limit, use = root+"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			most, used := number(read, path.Join(root, at, limit)), number(read, path.Join(root, at, use))
			if most >= 0 && used >= 0 && most < unlimited && (least < 0 || most-used < least) {
				least = max(most-used, 0)
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// unlimited is what the first version of the hierarchy says for no limit, or more.
const unlimited = 1 << 60

func number(read func(string) ([]byte, error), name string) int64 {
	text, err := read(name)
	if err != nil {
		return -1
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return -1 // "max"
	}
	return n
}

// narrow is where a cgroup leaves less than a host tier is worth.
const narrow = 1 << 30

func (x *examination) lookAtLimits() {
	l := x.Limits
	f := Finding{What: "memory limits", Verdict: OK, Facts: map[string]any{"locked_bytes": l.Locked, "cgroup_left_bytes": l.Left}}
	f.Text = "no cgroup limits memory"
	if l.Left >= 0 {
		f.Text = "the cgroup leaves " + size(l.Left)
	}
	if l.Locked >= 0 {
		f.Text += fmt.Sprintf("; %s may be locked, which NVIDIA's driver mostly does not count", size(l.Locked))
	} else {
		f.Text += "; any amount may be locked"
	}
	if l.Left >= 0 && l.Left < narrow {
		f.Verdict, f.Remedy = Warning, "Raise the memory limit of the container or the job: pinned memory counts too."
	}
	x.add(f)

	h := Finding{What: "huge pages", Verdict: OK, Text: "transparent huge pages: " + l.HugePages, Facts: map[string]any{"transparent": l.HugePages}}
	switch l.HugePages {
	case "always", "madvise":
	case "":
		h.Verdict, h.Text = Absent, "whether there are transparent huge pages is not known"
	default:
		h.Verdict = Warning
		h.Remedy = "Pinning and large copies gain by huge pages: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled."
	}
	x.add(h)
}

func size(bytes int64) string {
	unit, n := "bytes", float64(bytes)
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n < 1024 {
			break
		}
		unit, n = larger, n/1024
	}
	if unit == "bytes" {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.4g %s", n, unit)
}
