package doctor

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/quantity"
)

// Limits are the resources that the system allows the process.
type Limits struct {
	Locked    int64  // bytes that it may lock (RLIMIT_MEMLOCK); -1: no limit
	Files     int64  // files that it may have open at once (RLIMIT_NOFILE); -1: no limit
	Memory    int64  // bytes of the machine's memory; -1: unknown. It may grow after the start of a virtual machine
	Most      int64  // least memory limit of its cgroups, bytes; -1: no limit, or unknown
	Left      int64  // least memory left in its cgroups, bytes; -1: no limit, or unknown
	HugePages string // always, madvise, never; empty: unknown
}

// ReadLimits queries the system; read returns the contents of a file.
func ReadLimits(read func(name string) ([]byte, error)) Limits {
	l := Limits{Locked: limit(unix.RLIMIT_MEMLOCK), Files: limit(unix.RLIMIT_NOFILE), Memory: -1, Most: -1, Left: -1}
	if text, err := read("/proc/meminfo"); err == nil {
		l.Memory = total(string(text))
	}
	if text, err := read("/proc/self/cgroup"); err == nil {
		l.Most, l.Left = groups(read, string(text))
	}
	if text, err := read("/sys/kernel/mm/transparent_hugepage/enabled"); err == nil {
		l.HugePages = chosen(string(text))
	}
	return l
}

func limit(resource int) int64 {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil || r.Cur > math.MaxInt64 {
		return -1
	}
	return int64(r.Cur)
}

// total returns the first value of /proc/meminfo, which is in KiB although the unit reads kB. The result is in bytes.
func total(meminfo string) int64 {
	var kib int64
	if n, _ := fmt.Sscanf(meminfo, "MemTotal: %d kB", &kib); n != 1 {
		return -1
	}
	return kib << 10
}

// chosen returns the word in brackets.
func chosen(text string) string {
	_, rest, _ := strings.Cut(text, "[")
	word, _, found := strings.Cut(rest, "]")
	if !found {
		return ""
	}
	return word
}

// groups examines every cgroup from the process's own up to the root, in either version of the hierarchy. It returns the smallest limit, and the
// smallest amount that is left.
func groups(read func(string) ([]byte, error), membership string) (most, left int64) {
	most, left = -1, -1
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
			allowed, used := number(read, path.Join(root, at, limit)), number(read, path.Join(root, at, use))
			if allowed >= 0 && allowed < unlimited && (most < 0 || allowed < most) {
				most = allowed
			}
			if allowed >= 0 && used >= 0 && allowed < unlimited && (left < 0 || allowed-used < left) {
				left = max(allowed-used, 0)
			}
			if at == "/" {
				break
			}
		}
	}
	return most, left
}

// unlimited is the number from which on a limit means that there is none: version 1 of the hierarchy reports such numbers.
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

// narrow is the memory left in a cgroup below which a host tier is hardly useful. few is the number of files below which data files, devices and an
// application may run out of them.
const (
	narrow = 1 << 30
	few    = 1024
)

func (x *examination) lookAtLimits() {
	l := x.Limits
	f := Finding{What: "memory limits", Verdict: OK, Facts: map[string]any{
		"locked_bytes": l.Locked, "cgroup_left_bytes": l.Left, "cgroup_limit_bytes": l.Most, "machine_bytes": l.Memory,
	}}
	f.Text = "no cgroup limits memory"
	if l.Left >= 0 {
		f.Text = "the cgroup leaves " + quantity.Sized(l.Left)
		if l.Most >= 0 {
			f.Text += " of " + quantity.Sized(l.Most)
		}
	}
	if l.Memory >= 0 {
		f.Text += fmt.Sprintf("; the machine has %s", quantity.Sized(l.Memory))
	}
	if l.Locked >= 0 {
		f.Text += fmt.Sprintf("; %s may be locked, which NVIDIA's driver mostly does not count", quantity.Sized(l.Locked))
	} else {
		f.Text += "; any amount may be locked"
	}
	if l.Left >= 0 && l.Left < narrow {
		f.Verdict, f.Remedy = Warning, "Raise the memory limit of the container or the job: pinned memory counts too."
	}
	x.add(f)

	x.lookAtFiles()
	x.lookAtPages()
}

func (x *examination) lookAtFiles() {
	most := x.Limits.Files
	f := Finding{What: "open files", Verdict: OK, Text: "any number of files may be open", Facts: map[string]any{"files": most}}
	if most >= 0 {
		f.Text = fmt.Sprintf("%d files may be open at once", most)
	}
	if most >= 0 && most < few {
		f.Verdict, f.Remedy = Warning, "Allow more before the start: ulimit -n 4096."
	}
	x.add(f)
}

func (x *examination) lookAtPages() {
	l := x.Limits
	h := Finding{What: "huge pages", Verdict: OK, Text: "transparent huge pages: " + l.HugePages, Facts: map[string]any{"transparent": l.HugePages}}
	switch l.HugePages {
	case "always", "madvise":
	case "":
		h.Verdict, h.Text = Absent, "whether there are transparent huge pages is not known"
		h.Remedy = "Nothing has to be done: only pinning and large copies gain by them."
	default:
		h.Verdict = Warning
		h.Remedy = "Pinning and large copies gain by huge pages: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled."
	}
	x.add(h)
}
