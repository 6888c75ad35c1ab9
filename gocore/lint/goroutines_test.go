package lint

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// oneGoroutine lists packages whose tests run in one goroutine, by import path. `make race` leaves them out: there is nothing that the race detector could
// find in them, and `make nocgo` runs their tests.
const oneGoroutine = "testdata/one-goroutine.txt"

// No listed package starts a goroutine, neither in its tests nor in what they use of the core. None handles pointers in an unsafe way either, which the race
// detector's build also verifies.
func TestOneGoroutine(t *testing.T) {
	text, err := os.ReadFile(oneGoroutine)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(text))
	if len(listed) < 10 || !slices.IsSorted(listed) {
		t.Errorf("%s has %d packages, or is not sorted", oneGoroutine, len(listed))
	}
	c := newConcurrency(t)
	for _, name := range listed {
		dir, ok := strings.CutPrefix(name, module+"gocore/")
		if !ok || !slices.ContainsFunc(c.of(dir), func(s *source) bool { return s.test }) {
			t.Errorf("%s has no tests", name)
		}
		for _, where := range c.reached(dir) {
			for _, s := range c.of(where) {
				if s.test && where != dir {
					continue
				}
				for _, found := range concurrent(s) {
					t.Errorf("%s in %s: it starts a goroutine, so take it off the list: %s", name, oneGoroutine, found)
				}
			}
		}
		for _, s := range c.of(dir) {
			for _, found := range unsafely(s) {
				t.Errorf("%s in %s: it handles pointers in an unsafe way, so take it off the list: %s", name, oneGoroutine, found)
			}
		}
	}
}

// concurrency has the packages of the core, each parsed once.
type concurrency struct {
	t    *testing.T
	set  *token.FileSet
	dirs map[string][]*source
}

func newConcurrency(t *testing.T) *concurrency {
	return &concurrency{t, token.NewFileSet(), map[string][]*source{}}
}

// of returns the files of a package, those of its tests among them.
func (c *concurrency) of(dir string) []*source {
	if files, ok := c.dirs[dir]; ok {
		return files
	}
	names, err := filepath.Glob(filepath.Join(core, dir, "*.go"))
	if err != nil {
		c.t.Fatal(err)
	}
	var files []*source
	for _, name := range names {
		s, err := parse(c.set, dir, name, nil)
		if err != nil {
			c.t.Fatal(err)
		}
		files = append(files, s)
	}
	c.dirs[dir] = files
	return files
}

// reached returns a package, and those of the core that its files import, its tests included, or that these need.
func (c *concurrency) reached(dir string) []string {
	all := []string{dir}
	for at := 0; at < len(all); at++ {
		for _, s := range c.of(all[at]) {
			if s.test && all[at] != dir {
				continue
			}
			for _, where := range s.imports {
				next, ok := strings.CutPrefix(where, module+"gocore/")
				if ok && !slices.Contains(all, next) {
					all = append(all, next)
				}
			}
		}
	}
	return all
}

// concurrent returns what makes a file's code run in more than one goroutine.
func concurrent(s *source) (found []string) {
	report := func(n ast.Node, what string) { found = append(found, s.set.Position(n.Pos()).String()+": "+what) }
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "go statement")
		case *ast.SelectorExpr: // also of what is no package: t.Parallel, (*sync.WaitGroup).Go
			if slices.Contains([]string{"Parallel", "RunParallel", "AfterFunc", "Go", "AddCleanup", "SetFinalizer"}, n.Sel.Name) {
				report(n, n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// unsafely returns the uses of package unsafe in a file, but for questions about sizes.
func unsafely(s *source) (found []string) {
	s.eachUse(func(n ast.Node, pkg, name string) {
		if pkg == "unsafe" && !slices.Contains([]string{"Sizeof", "Alignof", "Offsetof"}, name) {
			found = append(found, s.set.Position(n.Pos()).String()+": unsafe."+name)
		}
	})
	return found
}

func TestWhatIsConcurrentIsFound(t *testing.T) {
	for text, want := range map[string]int{
		`func f() { go f() }`:                                 1,
		`func f() { func() { go func() {}() }() }`:            1,
		`func TestX(t *testing.T) { t.Parallel() }`:           1,
		`func BenchmarkX(b *testing.B) { b.RunParallel(nil)}`: 1,
		`import "time"; var t = time.AfterFunc(1, nil)`:       1,
		`import "sync"; var g sync.WaitGroup; var _ = g.Go`:   1,
		`import "runtime"; var _ = runtime.SetFinalizer`:      1,
		`import "runtime"; var _ = runtime.AddCleanup`:        1,
		`import "sync"; var mu sync.Mutex; var _ = mu.Lock`:   0,
	} {
		s, err := parse(token.NewFileSet(), "policy/engine", "a_test.go", "package a; "+text)
		if err != nil {
			t.Fatal(err)
		}
		if found := concurrent(s); len(found) != want {
			t.Errorf("%s: %q", text, found)
		}
	}
	for text, want := range map[string]int{
		`import "unsafe"; var p unsafe.Pointer`:                     1,
		`import "unsafe"; func f(p *byte) { _ = unsafe.Add(p, 1) }`: 1,
		`import "unsafe"; const n = unsafe.Sizeof(0)`:               0,
	} {
		s, err := parse(token.NewFileSet(), "policy/engine", "a.go", "package a; "+text)
		if err != nil {
			t.Fatal(err)
		}
		if found := unsafely(s); len(found) != want {
			t.Errorf("%s: %q", text, found)
		}
	}
	if reached := newConcurrency(t).reached("policy/engine"); !slices.Contains(reached, "base/checksum") {
		t.Errorf("of %q the checksum, which is imported by what is imported, is missing", reached)
	}
}
