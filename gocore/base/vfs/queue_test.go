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

	"pgregory.net/rapid"
)

func mustLineUp(t interface {
	Helper()
	Fatal(...any)
}, file string) *Place {
	t.Helper()
	p, err := LineUp(file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Places of one process, taken and left in any order: the first is the one that has waited longest.
func TestQueueInAProcess(t *testing.T) {
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		file := filepath.Join(dir, fmt.Sprint(n))
		var line []*Place
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			if len(line) == 0 || rapid.Bool().Draw(r, "join") {
				line = append(line, mustLineUp(r, file))
			} else {
				i := rapid.IntRange(0, len(line)-1).Draw(r, "leaves")
				if err := line[i].Leave(); err != nil {
					r.Fatal(err)
				}
				line = append(line[:i], line[i+1:]...)
			}
			for i, p := range line {
				if ahead, err := p.Ahead(); err != nil || ahead != int64(i) {
					r.Fatalf("before place %d of %d lie %d, %v", i, len(line), ahead, err)
				}
				if others, err := p.Others(); err != nil || others != int64(len(line)-1) {
					r.Fatalf("beside place %d of %d are %d, %v", i, len(line), others, err)
				}
			}
		}
		for _, p := range line {
			if err := p.Leave(); err != nil {
				r.Fatal(err)
			}
		}
		if len(queues) > 0 {
			r.Fatal("descriptors are left")
		}
	})
}

func TestNoQueueWithoutAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := LineUp(filepath.Join(file, "below")); err == nil || errors.Is(err, ErrTaken) {
		t.Errorf("a place %v, %v", p, err)
	}
}

// waiter is another process that has a place.
type waiter struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
}

func startWaiter(t *testing.T, file string) *waiter {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChildInTheQueue$")
	cmd.Env = append(os.Environ(), "VFS_TEST_QUEUE="+file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &waiter{t, cmd, bufio.NewReader(out)}
	t.Cleanup(w.kill)
	w.expect("waits")
	return w
}

func (w *waiter) expect(word string) {
	w.t.Helper()
	var got string
	if _, err := fmt.Fscan(w.out, &got); err != nil || got != word {
		w.t.Fatalf("the waiter says %q, %v; expected %q", got, err, word)
	}
}

func (w *waiter) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// TestChildInTheQueue takes a place, reports it, and reports when it is the first.
func TestChildInTheQueue(t *testing.T) {
	file := os.Getenv("VFS_TEST_QUEUE")
	if file == "" {
		t.Skip("only as a child")
	}
	p := mustLineUp(t, file)
	fmt.Println("waits")
	for ahead := int64(1); ahead > 0; time.Sleep(time.Millisecond) {
		var err error
		if ahead, err = p.Ahead(); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("first")
	select {}
}

// Processes become first in the order of arrival, and a killed process loses its place, wherever it was.
func TestQueueOfProcesses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "queue")
	mine := mustLineUp(t, file)
	second, third, fourth := startWaiter(t, file), startWaiter(t, file), startWaiter(t, file)
	last := mustLineUp(t, file)
	expect := func(want int64) {
		t.Helper()
		if ahead, err := last.Ahead(); ahead != want || err != nil {
			t.Errorf("before the last lie %d, %v; expected %d", ahead, err, want)
		}
		if others, err := last.Others(); others != want || err != nil {
			t.Errorf("beside the last are %d, %v; expected %d", others, err, want)
		}
	}
	expect(4)
	third.kill()
	expect(3)
	if err := mine.Leave(); err != nil { // the process keeps its other place
		t.Fatal(err)
	}
	second.expect("first")
	expect(2)
	second.kill()
	fourth.expect("first")
	expect(1)
	fourth.kill()
	expect(0)
	if err := last.Leave(); err != nil {
		t.Fatal(err)
	}
}
