package vfs

import (
	"crypto/rand"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Without O_TMPFILE, scratch files have a name for a moment, which identifies their process. A stray is a file whose process was killed in that moment.
const (
	scratchForm = ".velocpy-scratch-%08x-%d-%016x" // machine, process, random number

	// strayAge makes a file a stray whatever its name is: no live file has a name that long, and clocks in a network differ by less.
	strayAge = 10 * time.Minute
)

func scratchName() (string, error) {
	var tag [8]byte
	if _, err := rand.Read(tag[:]); err != nil {
		return "", err
	}
	return fmt.Sprintf(scratchForm, machine(), os.Getpid(), tag), nil
}

// machine is a number for this machine, derived from its host name.
func machine() uint32 {
	name, _ := os.Hostname() // without one, the processes of all nameless machines count as local
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return sum.Sum32()
}

// removeStrays removes the names of files whose processes are dead. A wrong removal of a live process's name does harm only on a file system that
// machines share: there, other machines lose a file without a name.
func removeStrays(dir entry) {
	names, err := dir.list()
	if err != nil {
		return // a directory that this user may write to is not always readable
	}
	for _, name := range names {
		if at := (entry{dir.dir, filepath.Join(dir.name, name)}); at.stray() {
			_ = at.unlink() // another process has removed it, or it is another user's
		}
	}
}

func (at entry) stray() bool {
	var where uint32
	var process int
	var tag uint64
	if n, _ := fmt.Sscanf(filepath.Base(at.name), scratchForm, &where, &process, &tag); n < 3 {
		return false
	}
	var st unix.Stat_t
	err := again(func() error { return unix.Fstatat(at.dir, at.name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	if where == machine() && unix.Kill(process, 0) == unix.ESRCH {
		return true
	}
	return time.Since(time.Unix(st.Mtim.Unix())) > strayAge
}
