package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostMethods is how many methods a type of the core may declare. A type with more than that has several concerns: each becomes a type of its own, with
// the fields that only it needs.
const mostMethods = 40

func TestNoTypeHasTooManyMethods(t *testing.T) {
	all, set := methods{}, token.NewFileSet()
	err := filepath.WalkDir(core, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		dir, err := filepath.Rel(core, filepath.Dir(name))
		if err != nil {
			return err
		}
		s, err := parse(set, dir, name, nil)
		if err == nil {
			all.add(s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Errorf("only %d types with methods seen: is this still the root of the core?", len(all))
	}
	for _, found := range all.tooMany() {
		t.Error(found)
	}
}

func TestTooManyMethodsAreFound(t *testing.T) {
	const fits = "func (T) m%[1]d() {}; func (*U) m%[1]d() {}; func (g *G[K, V]) m%[1]d() {}; func (h H[K]) m%[1]d() {};"
	text := "package p; type (T int; U int; G[K, V any] int; H[K any] int); func f() {};"
	for i := range mostMethods {
		text += fmt.Sprintf(fits, i)
	}
	for _, c := range []struct {
		more string
		want []string
	}{
		{"", nil},
		{"func m40() {}", nil},
		{"func (T) m40() {}", []string{"policy/engine.T has 41 methods, more than 40"}},
		{"func (t *T) m40() {}; func (*U) m40() {}; func (*U) m41() {}", []string{"policy/engine.T has 41 methods, more than 40", "policy/engine.U has 42 methods, more than 40"}},
		{"func (*G[_, _]) m40() {}", []string{"policy/engine.G has 41 methods, more than 40"}},
		{"func (H[_]) m40() {}", []string{"policy/engine.H has 41 methods, more than 40"}},
	} {
		all := methods{}
		for name, text := range map[string]string{
			"a.go":      text,
			"b.go":      "package p; " + c.more,
			"c_unix.go": "package p; func (T) m0() {}", // the same method as elsewhere, for another system
		} {
			s, err := parse(token.NewFileSet(), "policy/engine", name, text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			all.add(s)
		}
		if found := all.tooMany(); !slices.Equal(found, c.want) {
			t.Errorf("with %q: %q, want %q", c.more, found, c.want)
		}
	}
}

// methods has the names of the methods that each type declares. Files for different systems may declare the same one.
type methods map[string]map[string]bool

// add adds the methods that a file declares.
func (m methods) add(s *source) {
	for _, d := range s.file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		of := s.dir + "." + receiver(f.Recv.List[0].Type)
		if m[of] == nil {
			m[of] = map[string]bool{}
		}
		m[of][f.Name.Name] = true
	}
}

// receiver is the name of a receiver's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.ParenExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "" // no Go program has another
}

// tooMany names the types with more than mostMethods methods.
func (m methods) tooMany() (found []string) {
	for of, names := range m {
		if n := len(names); n > mostMethods {
			found = append(found, fmt.Sprintf("%s has %d methods, more than %d", of, n, mostMethods))
		}
	}
	slices.Sort(found)
	return found
}
