package lint

import (
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// core is the tree that the rules hold for.
const core = ".."

func TestTree(t *testing.T) {
	set := token.NewFileSet()
	files := 0
	err := filepath.WalkDir(core, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		dir, err := filepath.Rel(core, filepath.Dir(name))
		if err != nil {
			return err
		}
		if dir == "lint" { // reads the tree, so it may use os
			return nil
		}
		s, err := parse(set, dir, name, nil)
		if err != nil {
			return err
		}
		files++
		for _, violation := range check(s, rules) {
			t.Error(violation)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Errorf("only %d files seen: is this still the root of the core?", files)
	}
}

// Each rule has snippets that it must reject, and that no other rule minds, and ones that it must let pass.
func TestRulesFire(t *testing.T) {
	for _, c := range []struct {
		rule, dir, name, text string
		want                  int
	}{
		{"prints", "policy/engine", "a.go", `import "fmt"; func f() { fmt.Println(1); fmt.Printf("x") }`, 2},
		{"prints", "policy/engine", "a.go", `import other "fmt"; var p = other.Print`, 1},
		{"prints", "policy/engine", "a.go", `import "log"; func f() { log.Printf("x") }`, 1},
		{"prints", "policy/engine", "a.go", `import "log/slog"; var l = slog.Default()`, 1},
		{"prints", "policy/engine", "a.go", `func f() { println(1); print(2) }`, 2},
		{"prints", "base/vfs", "a.go", `import ("fmt"; "os"); func f() { fmt.Fprintln(os.Stderr, 1) }`, 1},
		{"prints", "policy/engine", "a.go", `import "runtime/debug"; func f() { debug.PrintStack() }`, 1},
		{"prints", "policy/engine", "a.go", `import "fmt"; var s = fmt.Sprintf("x"); func println() {}; func f() { println() }`, 0},
		{"prints", "policy/engine", "a.go", `type T struct{}; func (T) Println() {}; func f(fmt T) { fmt.Println() }`, 0},
		{"prints", "policy/engine", "a_test.go", `import "fmt"; func f() { fmt.Println(1) }`, 0},

		{"environment", "base/vfs", "a.go", `import "os"; var s = os.Getenv("X"); func f() { os.Setenv("X", s); _, _ = os.LookupEnv(s) }`, 3},
		{"environment", "base/vfs", "a.go", `import "os"; var s = os.Args`, 1},
		{"environment", "policy/engine", "a.go", `import "syscall"; func f() { syscall.Getenv("X") }`, 1},
		{"environment", "policy/engine", "a.go", `import "flag"; var _ = flag.Parse`, 1},

		{"exit", "base/vfs", "a.go", `import "os"; func f() { os.Exit(1) }`, 1},
		{"exit", "policy/engine", "a.go", `import "syscall"; func f() { syscall.Exit(1) }`, 1},

		{"signals", "policy/engine", "a.go", `import "os/signal"; var _ = signal.Notify`, 1},
		{"signals", "policy/engine", "a_test.go", `import "os/signal"; var _ = signal.Ignore`, 1},

		{"goroutines", "policy/engine", "a.go", `func f() { go f() }`, 1},
		{"goroutines", "policy/engine", "a.go", `func f() { func() { go func() {}() }() }`, 1},
		{"goroutines", "base/safego", "a.go", `func f() { go f() }`, 0},
		{"goroutines", "policy/engine", "a_test.go", `func f() { go f() }`, 0},

		{"atomics", "policy/engine", "a.go", `import "sync/atomic"; var x atomic.Int64`, 1},
		{"atomics", "base/safego", "a_test.go", `import a "sync/atomic"; var x a.Int64`, 1},
		{"atomics", "policy/engine", "a.go", `import "go.uber.org/atomic"; var x atomic.Int64`, 0},

		{"init", "policy/engine", "a.go", `func init() {}`, 1},
		{"init", "cabi", "a.go", `func init() { x = 1 }; var x int`, 1},
		{"init", "policy/engine", "a.go", `type T int; func (T) init() {}`, 0},

		{"cgo", "policy/engine", "a.go", `import "C"`, 1},
		{"cgo", "cabi", "a.go", `import "C"`, 0},
		{"cgo", "device/cuda/libcuda", "a.go", `import "C"`, 0},
		{"cgo", "device/cuda", "a.go", `import "C"`, 1},

		{"layers", "policy/engine", "a.go", `import "velocpy/gocore/store"; var _ = store.X`, 1},
		{"layers", "policy/engine", "a.go", `import "velocpy/gocore/policy/plan"; var _ = plan.X`, 0},
		{"layers", "policy/engine", "a_test.go", `import "velocpy/gocore/store"; var _ = store.X`, 0},
		{"layers", "store", "a.go", `import "velocpy/gocore/device/cuda"; var _ = cuda.X`, 1},
		{"layers", "store", "a.go", `import ("velocpy/gocore/device"; "velocpy/gocore/tier/disk/durable"); var _, _ = device.X, durable.X`, 0},
		{"layers", "device", "a.go", `import "velocpy/gocore/transfer/copier"; var _ = copier.X`, 1},
		{"layers", "unheardof", "a.go", `import "velocpy/gocore/model"; var _ = model.X`, 1},

		{"boundary", "policy/engine", "a_test.go", `import "velocpy/gocore/cabi"; var _ = cabi.X`, 1},

		{"mappings", "policy/engine", "a.go", `import "golang.org/x/sys/unix"; var _ = unix.Mmap`, 1},
		{"mappings", "base/vfs", "a.go", `import "syscall"; func f() { syscall.Syscall6(syscall.SYS_MMAP, 0, 0, 0, 0, 0, 0) }`, 1},
		{"mappings", "base/memory", "a.go", `import "golang.org/x/sys/unix"; var _ = unix.Mmap`, 0},

		{"files", "policy/engine", "a.go", `import "os"; var _ = os.Open`, 1},
		{"files", "policy/engine", "a.go", `import "golang.org/x/sys/unix"; var a, b = unix.Pread, unix.Fallocate`, 2},
		{"files", "base/vfs", "a.go", `import ("os"; "golang.org/x/sys/unix"); var a, b = os.Open, unix.Pread`, 0},
		{"files", "policy/engine", "a.go", `import "golang.org/x/sys/unix"; var a, b = unix.Write, unix.ENOSPC`, 0},

		{"sizes", "store", "a.go", `import "fmt"; var e = fmt.Errorf("a budget of %d bytes", 1)`, 1},
		{"sizes", "store", "a.go", `import "fmt"; var e, f = fmt.Errorf("write %d bytes at %d", 1, 2), fmt.Errorf("%d bytes free", 1)`, 1},
		{"sizes", "tier/disk/journal", "a.go", `import "fmt"; var e = fmt.Errorf("a record of %d bytes", 1)`, 0},
		{"sizes", "store", "a_test.go", `import "fmt"; var e = fmt.Errorf("a budget of %d bytes", 1)`, 0},

		{"dot imports", "policy/engine", "a.go", `import . "strings"; var _ = ToUpper`, 1},
	} {
		s, err := parse(token.NewFileSet(), c.dir, c.name, "package p; "+c.text)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		found := check(s, rules)
		for _, violation := range found {
			if !strings.Contains(violation, ": "+c.rule+": ") {
				t.Errorf("%s\nmeant for %q, but: %s", c.text, c.rule, violation)
			}
		}
		if len(found) != c.want {
			t.Errorf("%s\nin %s/%s: %d violations of %q, want %d", c.text, c.dir, c.name, len(found), c.rule, c.want)
		}
	}
}

func TestEveryRuleHasReasonAndSnippet(t *testing.T) {
	text, err := os.ReadFile("lint_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if r.reason == "" || !strings.Contains(string(text), `{"`+r.name+`", `) {
			t.Errorf("rule %q has no reason or no snippet", r.name)
		}
	}
}
