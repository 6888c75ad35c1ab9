package numa

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestParseList(t *testing.T) {
	for text, want := range map[string][]int{
		"0\n": {0}, "0-3,8": {0, 1, 2, 3, 8}, "": nil, "\n": nil, "5-5": {5}, "0,2,4-5": {0, 2, 4, 5},
	} {
		if got, err := parseList(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a", "3-1", "1-", "-1", "1,,2", "99999999"} {
		if got, err := parseList(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func mapped(t *testing.T, bytes int) []byte {
	t.Helper()
	p, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(p) })
	return p
}

// The kernel reports the policy of a range. Every machine has a node 0.
func TestPrefer(t *testing.T) {
	if mode, err := policyOf(nil); err != nil || mode != modeDefault {
		t.Skipf("policies cannot be asked for here, or the process has one: %d, %v", mode, err)
	}
	p := mapped(t, 1<<20)
	if err := Prefer(p, 0); errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skip("this machine refuses to place memory: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	p[0], p[len(p)-1] = 1, 2
	for _, at := range []int{0, len(p) - 1} {
		if mode, err := policyOf(unsafe.Pointer(&p[at])); err != nil || mode != modePreferred {
			t.Errorf("byte %d has policy %d, %v", at, mode, err)
		}
	}
	if mode, err := policyOf(nil); err != nil || mode != modeDefault {
		t.Errorf("the thread has policy %d, %v", mode, err)
	}
	for _, nodes := range [][]int{nil, {-1}, {mostNodes}} {
		if err := Prefer(p, nodes...); !errors.Is(err, ErrNodes) {
			t.Errorf("nodes %v: %v", nodes, err)
		}
	}
	if err := Prefer(p, mostNodes-1); err == nil {
		t.Error("memory was placed on a node that is not there")
	}
	if err := Prefer(nil, 0); err != nil {
		t.Errorf("nothing to place: %v", err)
	}
}

// A thread runs on the processors of the node while f runs, and gets its previous ones back. If the node does not exist it runs on any.
func TestRun(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	affinity := func() (set unix.CPUSet) {
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Fatal(err)
		}
		return set
	}
	before := affinity()
	near, err := processors(0)
	if err != nil {
		t.Skip("the kernel describes no nodes: ", err)
	}
	for _, node := range []int{0, -1, mostNodes} {
		ran := false
		Run(node, func() {
			ran = true
			inside := affinity()
			for cpu := range 1024 {
				want := before.IsSet(cpu) && (node != 0 || slices.Contains(near, cpu))
				if inside.IsSet(cpu) != want {
					t.Errorf("node %d: the thread may run on processor %d: %v", node, cpu, inside.IsSet(cpu))
				}
			}
		})
		if !ran || affinity() != before {
			t.Errorf("node %d: ran %v; afterwards the thread may run on other processors than before", node, ran)
		}
	}
}
