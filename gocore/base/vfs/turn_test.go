package vfs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestTurn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "turn")
	first, err := TryTurn(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryTurn(file); !errors.Is(err, ErrTaken) {
		t.Fatalf("a second turn beside the first: %v", err)
	}
	if err := first.End(); err != nil {
		t.Fatal(err)
	}
	second, err := TryTurn(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.End(); err != nil {
		t.Fatal(err)
	}
	if _, err := TryTurn(filepath.Join(file, "below")); err == nil || errors.Is(err, ErrTaken) {
		t.Fatalf("a turn without a file: %v", err)
	}
}

// The turn of a killed process ends, even while a child lives that has inherited the descriptor.
func TestTurnEndsWithItsProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "turn")
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildWithTheTurn$")
	cmd.Env = append(os.Environ(), "VFS_TEST_TURN="+file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var grandchild int
	if _, err := fmt.Fscan(bufio.NewReader(out), &grandchild); err != nil {
		t.Fatal(err)
	}
	heir, err := os.FindProcess(grandchild)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = heir.Kill() }()
	if _, err := TryTurn(file); !errors.Is(err, ErrTaken) {
		t.Errorf("a turn beside another process's: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if held, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/3", grandchild)); held != file {
		t.Fatalf("the grandchild holds %q", held)
	}
	turn, err := TryTurn(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := turn.End(); err != nil {
		t.Error(err)
	}
}

func TestChildWithTheTurn(t *testing.T) {
	file := os.Getenv("VFS_TEST_TURN")
	if file == "" {
		t.Skip("runs only as a child")
	}
	turn, err := TryTurn(file)
	if err != nil {
		t.Fatal(err)
	}
	heir := exec.Command("sleep", "60")
	heir.ExtraFiles = []*os.File{os.NewFile(uintptr(turn.fd), file)}
	if err := heir.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, heir.Process.Pid)
	time.Sleep(time.Minute)
}
