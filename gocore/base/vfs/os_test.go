package vfs

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func listing(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Both ways of creating a scratch file give a private file without a name.
func TestScratchFilesHaveNoName(t *testing.T) {
	for name, way := range map[string]opener{"unnamed": openUnnamed, "unlinked": openUnlinked} {
		for _, direct := range []bool{false, true} {
			dir := t.TempDir()
			fd, isDirect, err := openScratch(entryOf(dir), direct, way)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if left := listing(t, dir); len(left) != 0 {
				t.Errorf("%s: left %v", name, left)
			}
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil || st.Nlink != 0 || st.Mode&0o077 != 0 {
				t.Errorf("%s: %d links, mode %o, %v", name, st.Nlink, st.Mode, err)
			}
			flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			fdFlags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			if isDirect != (flags&unix.O_DIRECT != 0) || fdFlags&unix.FD_CLOEXEC == 0 {
				t.Errorf("%s: direct %v, flags %#x, descriptor flags %#x", name, isDirect, flags, fdFlags)
			}
			_ = unix.Close(fd)
		}
	}
}

// refuses is an opener like that of a file system without some feature.
func refuses(flag int, errno unix.Errno, then opener) opener {
	return func(dir entry, flags int) (int, error) {
		if flags&flag == flag {
			return -1, errno
		}
		return then(dir, flags)
	}
}

func TestFallbacks(t *testing.T) {
	noTmpfile := func(entry, int) (int, error) { return -1, unix.EOPNOTSUPP }
	oldKernel := func(entry, int) (int, error) { return -1, unix.EISDIR }
	full := func(entry, int) (int, error) { return -1, unix.ENOSPC }
	noDirect := refuses(unix.O_DIRECT, unix.EINVAL, openUnlinked)
	for _, c := range []struct {
		name       string
		ways       []opener
		wantDirect bool
		want       error
	}{
		{"no O_TMPFILE", []opener{noTmpfile, openUnlinked}, true, nil},
		{"old kernel", []opener{oldKernel, openUnlinked}, true, nil},
		{"no O_DIRECT", []opener{refuses(unix.O_DIRECT, unix.EINVAL, openUnnamed), noDirect}, false, nil},
		{"neither", []opener{noTmpfile, noDirect}, false, nil},
		{"full", []opener{full, openUnlinked}, false, unix.ENOSPC},
		{"nothing works", []opener{noTmpfile}, false, unix.EOPNOTSUPP},
	} {
		fd, direct, err := openScratch(entryOf(t.TempDir()), true, c.ways...)
		if !errors.Is(err, c.want) || direct != c.wantDirect {
			t.Errorf("%s: direct %v, %v", c.name, direct, err)
		}
		if err == nil {
			_ = unix.Close(fd)
		}
	}
}

// A refusal that comes only with the I/O turns direct I/O off and loses nothing. The kernel refuses here because the test claims an alignment below the
// file's real one.
func TestLateRefusalOfDirectIO(t *testing.T) {
	file, err := OS().OpenScratch(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if !file.Direct() {
		t.Skip("this file system refuses direct I/O at once")
	}
	file.(*osFile).align = 1
	want := random(blockAligned(DefaultAlign)[:1000])
	if n, err := file.WriteAt(want, 3); n != 1000 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	if file.Direct() {
		t.Error("still direct")
	}
	got := make([]byte, 1000)
	if _, err := file.ReadAt(got, 3); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v", err)
	}
}

func TestDirectRefusesUnaligned(t *testing.T) {
	file, err := OS().OpenScratch(t.TempDir(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if !file.Direct() {
		t.Skip("no direct I/O here")
	}
	if a := file.Align(); a < 1 || a > 1<<20 || a&(a-1) != 0 {
		t.Fatalf("align %d", a)
	}
	if _, err := file.WriteAt(blockAligned(DefaultAlign), 1); !errors.Is(err, unix.EINVAL) || !file.Direct() {
		t.Errorf("%v, direct %v", err, file.Direct())
	}
}

func TestAllocateReportsFullDisk(t *testing.T) {
	file, err := OS().OpenScratch(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	free, err := OS().Free(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	err = file.Allocate(0, free+(1<<40))
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EFBIG) {
		t.Errorf("%v", err)
	}
	if size, _ := file.Size(); size != 0 {
		t.Errorf("%d bytes after a failed allocation", size)
	}
}

// The scratch files of a killed process are gone: the test re-executes its binary and kills it.
func TestNothingIsLeftAfterKill(t *testing.T) {
	const marker = "-test.run=^TestChildThatIsKilled$"
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], marker)
	cmd.Env = append(os.Environ(), "VFS_TEST_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	before, err := OS().Free(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, 1)
	if _, err := out.Read(ready); err != nil || ready[0] != 'R' {
		t.Fatalf("child: %q, %v", ready, err)
	}
	if during, _ := OS().Free(dir); during > before-(200<<20) {
		t.Errorf("the child's file takes no space: %d free before, %d now", before, during)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if left := listing(t, dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if after, _ := OS().Free(dir); after > before-(100<<20) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the space does not come back")
		}
	}
}

func TestChildThatIsKilled(t *testing.T) {
	dir := os.Getenv("VFS_TEST_DIR")
	if dir == "" {
		t.Skip("runs only as a child")
	}
	file, err := OS().OpenScratch(dir, true)
	if err == nil {
		err = file.Allocate(0, 256<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("R")
	time.Sleep(time.Minute)
}

func TestUnlinkedLeavesNothingOnFailure(t *testing.T) {
	dir := t.TempDir()
	if _, err := openUnlinked(entryOf(filepath.Join(dir, "missing")), unix.O_RDWR); !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v", err)
	}
	if left := listing(t, dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// entryOf returns an entry by its path alone.
func entryOf(name string) entry { return entry{unix.AT_FDCWD, name} }
