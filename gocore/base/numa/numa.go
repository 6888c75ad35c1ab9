// Package numa places memory and threads on nodes of the host: memory for copies of a device belongs on the node that the device is attached to.
//
// On a machine with several nodes a copy between two nodes is slower, and takes bandwidth from other traffic between them. All functions here are
// advice: if a kernel or a container refuses it, memory and threads stay where they would be without it.
package numa

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/base/vfs"
)

// Modes of memory policies, from linux/mempolicy.h.
const (
	modeDefault    = 0
	modePreferred  = 1
	modeInterleave = 3
)

// mostNodes bounds the nodes in a mask.
const mostNodes = 1024

// ErrNodes marks lists of nodes on which no memory can be placed.
var ErrNodes = errors.New("no such nodes")

// sys is the directory in which the kernel describes the nodes.
const sys = "/sys/devices/system/node"

// Prefer places untouched pages of the range on a node, or page by page on several nodes in turn, as long as these have memory. If the process was
// started with its own policy (numactl), that policy stays. The range begins at a page.
func Prefer(p []byte, nodes ...int) error {
	mode, err := policyOf(nil)
	if err != nil || mode != modeDefault || len(p) == 0 {
		return err
	}
	if len(nodes) == 0 || slices.Min(nodes) < 0 || slices.Max(nodes) >= mostNodes {
		return fmt.Errorf("%w: %v", ErrNodes, nodes)
	}
	var mask [mostNodes / 64]uint64
	for _, node := range nodes {
		mask[node/64] |= 1 << (node % 64)
	}
	mode = modePreferred
	if len(nodes) > 1 {
		mode = modeInterleave
	}
	const bits = mostNodes + 1 // the kernel uses one bit less than the given number
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(mode), uintptr(unsafe.Pointer(&mask)), bits, 0)
	if errno != 0 {
		return fmt.Errorf("place %s on nodes %v: %w", quantity.Exact(int64(len(p))), nodes, errno)
	}
	return nil
}

// Preferring tells whether the page at an address has a policy set by Prefer.
func Preferring(at unsafe.Pointer) (bool, error) {
	mode, err := policyOf(at)
	return mode == modePreferred || mode == modeInterleave, err
}

// policyOf is the policy of the page at an address, or of the calling thread for nil.
func policyOf(at unsafe.Pointer) (mode int, err error) {
	const ofAddress = 1 << 1
	flags := uintptr(0)
	if at != nil {
		flags = ofAddress
	}
	var got int32
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&got)), 0, 0, uintptr(at), flags, 0)
	if errno != 0 {
		return 0, fmt.Errorf("ask for the memory policy: %w", errno)
	}
	const modeBits = 0xff // the bits above are flags of the mode
	return int(got) & modeBits, nil
}

// Run calls f on a thread that is confined to the processors of a node, as far as the process may use any of them. Otherwise, and for a negative
// node, it may run on any. Afterwards the previous processors of the thread are restored.
func Run(node int, f func()) {
	runtime.LockOSThread()
	before, err := confine(node)
	defer func() {
		if err == nil {
			err = unix.SchedSetaffinity(0, before)
			if err != nil {
				return // still locked: the thread ends with its goroutine, so that no other goroutine runs confined
			}
		}
		runtime.UnlockOSThread()
	}()
	f()
}

// errNowhere means that the process may not run on any processor of the node.
var errNowhere = errors.New("no processor of the node")

// confine confines the calling thread to the processors of a node, and returns its previous ones.
func confine(node int) (before *unix.CPUSet, err error) {
	near, err := processors(node)
	if err != nil {
		return nil, err
	}
	before = new(unix.CPUSet)
	if err := unix.SchedGetaffinity(0, before); err != nil {
		return nil, err
	}
	var both unix.CPUSet
	for _, cpu := range near {
		if before.IsSet(cpu) {
			both.Set(cpu)
		}
	}
	if both.Count() == 0 {
		return nil, errNowhere
	}
	return before, unix.SchedSetaffinity(0, &both)
}

// processors are the processors of a node.
func processors(node int) ([]int, error) {
	text, err := vfs.ReadFile(fmt.Sprintf("%s/node%d/cpulist", sys, node))
	if err != nil {
		return nil, err
	}
	return parseList(string(text))
}

// parseList parses lists of the kernel: "0-3,8".
func parseList(text string) (all []int, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.ParseUint(low, 10, 16)
		to, err2 := strconv.ParseUint(high, 10, 16)
		if err1 != nil || err2 != nil || to < from {
			return nil, fmt.Errorf("a list of the kernel is %q", text)
		}
		for n := from; n <= to; n++ {
			all = append(all, int(n))
		}
	}
	return all, nil
}
