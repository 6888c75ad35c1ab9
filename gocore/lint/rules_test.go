package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "velocpy/"

// source is one parsed file.
type source struct {
	dir     string // its package, below gocore: "store", "policy/engine"
	test    bool
	set     *token.FileSet
	file    *ast.File
	imports map[string]string // the name used in the file -> import path
}

func parse(set *token.FileSet, dir, name string, text any) (*source, error) {
	file, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		return nil, err
	}
	s := &source{dir: dir, test: strings.HasSuffix(name, "_test.go"), set: set, file: file, imports: map[string]string{}}
	for _, spec := range file.Imports {
		where, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		as := path.Base(where)
		if spec.Name != nil {
			as = spec.Name.Name
		}
		if as == "." || as == "_" {
			as += where // still listed, under a name no selector has
		}
		s.imports[as] = where
	}
	return s, nil
}

// rule finds violations; in tests too where tests says so.
type rule struct {
	name   string
	reason string
	tests  bool
	except []string // packages that may
	find   func(s *source, report func(ast.Node, string))
}

// check returns the violations of a file as "position: text".
func check(s *source, rules []rule) []string {
	var found []string
	for _, r := range rules {
		if s.test && !r.tests || slices.Contains(r.except, s.dir) {
			continue
		}
		r.find(s, func(n ast.Node, what string) {
			found = append(found, fmt.Sprintf("%s: %s: %s (%s)", s.set.Position(n.Pos()), r.name, what, r.reason))
		})
	}
	return found
}

// inBytes are the packages whose messages name lengths as bytes: those of formats, where damage lies at offsets, of the C contract, and of doubles for tests.
var inBytes = []string{
	"base/description", "base/quantity", "base/vfs", "cabi", "device/cuda/conformance", "device/cuda/double", "device/cuda/kernel", "device/devicetest",
	"device/hostdevice", "model", "tier/disk/catalog", "tier/disk/durable", "tier/disk/journal", "tier/tiertest", "transfer/copier",
}

var rules = []rule{
	{
		name:   "prints",
		reason: "the core never writes to descriptors 1 and 2: a broken pipe would kill the process; use logring",
		find: func(s *source, report func(ast.Node, string)) {
			s.eachUse(func(n ast.Node, pkg, name string) {
				if pkg == "fmt" && strings.HasPrefix(name, "Print") || pkg == "os" && (name == "Stdout" || name == "Stderr") ||
					pkg == "runtime/debug" && name == "PrintStack" {
					report(n, pkg+"."+name)
				}
			})
			s.eachImport(func(n ast.Node, where string) {
				if where == "log" || where == "log/slog" {
					report(n, "import of "+where)
				}
			})
			s.eachBuiltin(report, "print", "println")
		},
	},
	{
		name:   "environment",
		reason: "Go does not see what Python sets; Python reads the environment and passes a configuration",
		find: func(s *source, report func(ast.Node, string)) {
			banned := []string{"Getenv", "Setenv", "LookupEnv", "Unsetenv", "Clearenv", "Environ", "ExpandEnv", "Args"}
			s.eachUse(func(n ast.Node, pkg, name string) {
				if slices.Contains([]string{"os", "syscall", "golang.org/x/sys/unix"}, pkg) && slices.Contains(banned, name) {
					report(n, pkg+"."+name)
				}
			})
			s.eachImport(func(n ast.Node, where string) {
				if where == "flag" {
					report(n, "import of flag")
				}
			})
		},
	},
	{
		name:   "exit",
		reason: "no exit from a library",
		find: func(s *source, report func(ast.Node, string)) {
			s.eachUse(func(n ast.Node, pkg, name string) {
				if name == "Exit" && (pkg == "os" || pkg == "syscall" || pkg == "golang.org/x/sys/unix") {
					report(n, pkg+"."+name)
				}
			})
		},
	},
	{
		name:   "signals",
		reason: "signal.Notify takes the signal away from Python",
		tests:  true,
		find:   noImport("os/signal"),
	},
	{
		name:   "goroutines",
		reason: "a panic in a bare goroutine ends the Python process; use safego.Go",
		except: []string{"base/safego"},
		find: func(s *source, report func(ast.Node, string)) {
			ast.Inspect(s.file, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok {
					report(n, "go statement")
				}
				return true
			})
		},
	},
	{
		name:   "atomics",
		reason: "one kind of atomics: go.uber.org/atomic",
		tests:  true,
		find:   noImport("sync/atomic"),
	},
	{
		name:   "init",
		reason: "it would run at dlopen, before the user configured anything",
		tests:  true,
		find: func(s *source, report func(ast.Node, string)) {
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					report(f, "func init")
				}
			}
		},
	},
	{
		name:   "cgo",
		reason: "packages with logic build and are tested without cgo",
		tests:  true,
		except: []string{"cabi", "device/cuda/libcuda", "device/topology/nvml"}, // the boundary, and the libraries of the driver
		find:   noImport("C"),
	},
	{
		name:   "layers",
		reason: "an import against the table of layers (layers_test.go) ties together what has to change apart",
		find:   findUpward,
	},
	{
		name:   "boundary",
		reason: "cabi is the boundary: it imports the other packages, and no package imports it",
		tests:  true,
		find:   noImport(module + "gocore/cabi"),
	},
	{
		name:   "mappings",
		reason: "package memory makes the mappings and accounts for them",
		except: []string{"base/memory"},
		find: func(s *source, report func(ast.Node, string)) {
			s.eachUse(func(n ast.Node, pkg, name string) {
				system := pkg == "syscall" || pkg == "golang.org/x/sys/unix"
				if system && slices.Contains([]string{"Mmap", "MmapPtr", "Mremap", "SYS_MMAP", "SYS_MREMAP"}, name) {
					report(n, pkg+"."+name)
				}
			})
		},
	},
	{
		name:   "files",
		reason: "all file I/O goes through package vfs, where tests can make it fail",
		except: []string{"base/vfs", "base/memory"}, // memory that processes share has a length, as a file has
		find: func(s *source, report func(ast.Node, string)) {
			noImport("os", "io/ioutil")(s, report)
			banned := []string{
				"Open", "Openat", "Openat2", "Creat", "Pread", "Pwrite", "Preadv", "Pwritev", "Ftruncate", "Truncate", "Fallocate",
				"Unlink", "Unlinkat", "Rename", "Renameat", "Mkdir", "Mkdirat", "Rmdir", "Link", "Symlink", "Statfs", "Fsync", "Fdatasync",
			}
			s.eachUse(func(n ast.Node, pkg, name string) {
				if (pkg == "syscall" || pkg == "golang.org/x/sys/unix") && slices.Contains(banned, name) {
					report(n, pkg+"."+name)
				}
			})
		},
	},
	{
		name:   "sizes",
		reason: "messages have sizes in one kind of unit: quantity.Sized, or quantity.Exact where a few bytes decide; bytes of a range stay numbers",
		except: inBytes,
		find: func(s *source, report func(ast.Node, string)) {
			ast.Inspect(s.file, func(n ast.Node) bool {
				text, ok := n.(*ast.BasicLit)
				if ok && text.Kind == token.STRING && strings.Contains(text.Value, "%d bytes") && !strings.Contains(text.Value, "%d bytes at %d") {
					report(n, text.Value)
				}
				return true
			})
		},
	},
	{
		name:   "dot imports",
		reason: "they hide from the other rules what is used",
		tests:  true,
		find: func(s *source, report func(ast.Node, string)) {
			for _, spec := range s.file.Imports {
				if spec.Name != nil && spec.Name.Name == "." {
					report(spec, "import . "+spec.Path.Value)
				}
			}
		},
	},
}

func noImport(banned ...string) func(*source, func(ast.Node, string)) {
	return func(s *source, report func(ast.Node, string)) {
		s.eachImport(func(n ast.Node, where string) {
			if slices.Contains(banned, where) {
				report(n, "import of "+where)
			}
		})
	}
}

func (s *source) eachImport(visit func(n ast.Node, where string)) {
	for _, spec := range s.file.Imports {
		if where, err := strconv.Unquote(spec.Path.Value); err == nil {
			visit(spec, where)
		}
	}
}

// eachUse visits every pkg.Name where pkg is an import, whatever it is called in this file.
func (s *source) eachUse(visit func(n ast.Node, pkg, name string)) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if !ok || id.Obj != nil { // a variable of that name
			return true
		}
		if pkg, ok := s.imports[id.Name]; ok {
			visit(n, pkg, sel.Sel.Name)
		}
		return true
	})
}

// eachBuiltin reports calls of builtin functions, unless the file has its own ones of that name.
func (s *source) eachBuiltin(report func(ast.Node, string), names ...string) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if id, ok := call.Fun.(*ast.Ident); ok && id.Obj == nil && slices.Contains(names, id.Name) {
			report(n, id.Name)
		}
		return true
	})
}
