// Command mutate puts one bug into a Go file and prints the result:
//
//	go -C tools run ./mutate ../gocore/tier/disk/journal/log.go sync-error-ignored clear
//
// The bug's place is the statement, or the case of a switch, below the comment "//mutation:NAME". The words behind the name say what becomes of it. They name no
// identifier of the project, so that a bug survives every rename:
//
//	true, false      an operand is true or false, whatever it says
//	nil              a value is nil
//	times N          a value is N times as large
//	any              M[k] != nil becomes len(M) > 0
//	drop N           a call loses argument N
//	swap             a call's first two arguments change places
//	method M         a call of a method goes to another method, M, of a package outside the project
//	becomes PATH     a value is replaced by another one: that of the next statement (PATH begins with "next") or of the statement around (with "up")
//	remove [N]       the statement, and N-1 that follow, are not executed
//	behind N         the statement is executed behind the N that follow it
//	retry            an assignment of an error is executed again if the error is not nil
//	clear            an assignment of an error is followed by one of nil
//
// All but the last four are followed by "at PATH" where they mean a part of the statement. The path starts at the statement's expression: the condition of an if (or, if the
// path begins with "init", the value that is assigned before it), the first expression of a case, the results of a return, the values of an assignment, the call of a
// statement that is one. Each number goes into a part, counted from 0: into a value or result where there are several, an operand of a chain of the same operator, an
// argument of a call, a result of a function literal that consists of a return. Parentheses and "!" do not count.
//
// What is taken away is not deleted but never evaluated or executed, so that no variable and no import is unused.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) < 4 {
		fail(errors.New("use: mutate FILE MARKER OPERATION..."))
	}
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		text, err = mutate(text, os.Args[2], os.Args[3:])
	}
	if err != nil {
		fail(err)
	}
	_, _ = os.Stdout.Write(text)
}

func fail(err error) {
	_, _ = os.Stderr.WriteString(err.Error() + "\n")
	os.Exit(1)
}

// mutation is a marked statement of a file.
type mutation struct {
	text  []byte
	set   *token.FileSet
	stmt  ast.Stmt
	list  []ast.Stmt // the block that the statement stands in, from it on
	outer ast.Stmt   // the nearest statement around that has an expression; nil in a function's outermost block
	edits []edit
}

// edit replaces text[from:end].
type edit struct {
	from, end int
	by        string
}

// mutate returns the text of a file after an operation on the statement below a marker.
func mutate(text []byte, marker string, operation []string) ([]byte, error) {
	m := &mutation{text: text, set: token.NewFileSet()}
	file, err := parser.ParseFile(m.set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if err := m.find(file, marker); err != nil {
		return nil, err
	}
	if err := m.apply(operation); err != nil {
		return nil, fmt.Errorf("%s: %q: %w", marker, strings.Join(operation, " "), err)
	}
	slices.SortStableFunc(m.edits, func(a, b edit) int { return b.from - a.from })
	out := slices.Clone(text)
	for _, e := range m.edits {
		out = slices.Replace(out, e.from, e.end, []byte(e.by)...)
	}
	return out, nil
}

func (m *mutation) find(file *ast.File, marker string) error {
	line := 0
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Text != "//mutation:"+marker {
				continue
			}
			if line > 0 {
				return fmt.Errorf("the marker %s stands twice", marker)
			}
			line = m.set.Position(group.End()).Line + 1
		}
	}
	if line == 0 {
		return fmt.Errorf("there is no marker %s", marker)
	}
	var around []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		if list := block(n); m.stmt == nil {
			for i, s := range list {
				if m.set.Position(s.Pos()).Line == line {
					m.stmt, m.list = s, list[i:]
					m.outer = enclosing(append(around, n))
					break
				}
			}
		}
		around = append(around, n)
		return true
	})
	if m.stmt == nil {
		return fmt.Errorf("no statement begins below the marker %s", marker)
	}
	return nil
}

// block returns the statements that a node lists.
func block(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// enclosing returns the innermost statement that has an expression.
func enclosing(around []ast.Node) ast.Stmt {
	for _, n := range slices.Backward(around) {
		switch n := n.(type) {
		case *ast.IfStmt:
			return n
		case *ast.CaseClause:
			return n
		case *ast.FuncLit, *ast.FuncDecl:
			return nil
		}
	}
	return nil
}

func (m *mutation) apply(words []string) error {
	verb, args := words[0], words[1:]
	var at []string
	if k := slices.Index(args, "at"); k >= 0 {
		args, at = args[:k], args[k+1:]
	}
	switch verb {
	case "remove", "behind", "retry", "clear":
		if at != nil {
			return errors.New("is about the whole statement")
		}
		return m.applyToStatement(verb, args)
	}
	x, err := follow(m.stmt, at)
	if err != nil {
		return err
	}
	return m.applyToExpression(verb, args, x)
}

func (m *mutation) applyToStatement(verb string, args []string) error {
	n := 1
	if verb == "remove" && len(args) == 1 || verb == "behind" && len(args) == 1 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n < 1 {
			return errors.New("takes a positive number")
		}
	} else if len(args) > 0 || verb == "behind" {
		return errors.New("takes other arguments")
	}
	switch verb {
	case "remove":
		if n > len(m.list) {
			return errors.New("there are fewer statements")
		}
		for _, s := range m.list[:n] {
			if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
				return errors.New("a statement that defines a variable is needed")
			}
		}
		m.insert(m.stmt.Pos(), "if false {\n")
		m.insert(m.list[n-1].End(), "\n}")
	case "behind":
		if n >= len(m.list) {
			return errors.New("there are fewer statements")
		}
		m.insert(m.list[n].End(), "\n"+m.said(m.stmt))
		m.replace(m.stmt, "")
	default:
		a, ok := m.stmt.(*ast.AssignStmt)
		if !ok || len(a.Rhs) != 1 {
			return errors.New("is about an assignment of one value")
		}
		failed := m.said(a.Lhs[len(a.Lhs)-1])
		if verb == "clear" {
			m.insert(a.End(), "\n"+failed+" = nil")
			break
		}
		var to []string
		for _, x := range a.Lhs {
			to = append(to, m.said(x))
		}
		m.insert(a.End(), fmt.Sprintf("\nif %s != nil {\n%s = %s\n}", failed, strings.Join(to, ", "), m.said(a.Rhs[0])))
	}
	return nil
}

func (m *mutation) applyToExpression(verb string, args []string, x ast.Expr) error {
	if counts := map[string]int{"times": 1, "drop": 1, "method": 1}; verb != "becomes" && len(args) != counts[verb] {
		return errors.New("takes other arguments")
	}
	switch verb {
	case "true":
		m.replace(x, "(true || ("+m.said(x)+"))")
	case "false":
		m.replace(x, "(false && ("+m.said(x)+"))")
	case "nil":
		m.replace(x, "nil")
	case "times":
		m.replace(x, "(("+m.said(x)+") * "+args[0]+")")
	case "any":
		b, ok := x.(*ast.BinaryExpr)
		if !ok || b.Op != token.NEQ {
			return errors.New("is about a comparison with nil")
		}
		element, ok := b.X.(*ast.IndexExpr)
		if !ok {
			return errors.New("is about an element")
		}
		m.replace(x, "len("+m.said(element.X)+") > 0")
	case "becomes":
		by, err := m.other(args)
		if err != nil {
			return err
		}
		m.replace(x, "("+m.said(by)+")")
	case "drop", "swap", "method":
		call, ok := x.(*ast.CallExpr)
		if !ok {
			return errors.New("is about a call")
		}
		return m.applyToCall(verb, args, call)
	default:
		return errors.New("is no operation")
	}
	return nil
}

func (m *mutation) applyToCall(verb string, args []string, call *ast.CallExpr) error {
	switch verb {
	case "swap":
		if len(call.Args) < 2 {
			return errors.New("there are fewer arguments")
		}
		m.replace(call.Args[0], m.said(call.Args[1]))
		m.replace(call.Args[1], m.said(call.Args[0]))
	case "method":
		of, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return errors.New("is about the call of a method")
		}
		m.replace(of.Sel, args[0])
	default:
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 0 || n >= len(call.Args) {
			return errors.New("there are fewer arguments")
		}
		kept := slices.Delete(slices.Clone(call.Args), n, n+1)
		var said []string
		for _, a := range kept {
			said = append(said, m.said(a))
		}
		last := ""
		if call.Ellipsis.IsValid() && n < len(call.Args)-1 {
			last = "..."
		}
		m.edits = append(m.edits, edit{m.offset(call.Lparen) + 1, m.offset(call.Rparen), strings.Join(said, ", ") + last})
	}
	return nil
}

// other follows a path that begins at the next statement or the one around.
func (m *mutation) other(path []string) (ast.Expr, error) {
	switch {
	case len(path) == 0:
	case path[0] == "next" && len(m.list) > 1:
		return follow(m.list[1], path[1:])
	case path[0] == "up" && m.outer != nil:
		return follow(m.outer, path[1:])
	}
	return nil, errors.New("there is no such statement")
}

// follow returns the part of a statement that a path leads to.
func follow(s ast.Stmt, path []string) (ast.Expr, error) {
	var all []ast.Expr
	switch s := s.(type) {
	case *ast.IfStmt:
		if len(path) > 0 && path[0] == "init" {
			return follow(s.Init, path[1:])
		}
		all = []ast.Expr{s.Cond}
	case *ast.CaseClause:
		if len(s.List) > 0 {
			all = s.List[:1]
		}
	case *ast.ReturnStmt:
		all = s.Results
	case *ast.AssignStmt:
		all = s.Rhs
	case *ast.ExprStmt:
		all = []ast.Expr{s.X}
	}
	var x ast.Expr
	if len(all) == 1 {
		x = bare(all[0])
	}
	for _, step := range path {
		if x != nil {
			all = parts(x)
		}
		n, err := strconv.Atoi(step)
		if err != nil || n < 0 || n >= len(all) {
			return nil, fmt.Errorf("the path leads nowhere at %q", step)
		}
		x = bare(all[n])
	}
	if x == nil {
		return nil, errors.New("the statement has no expression, or several")
	}
	return x, nil
}

// parts returns what the numbers of a path count.
func parts(x ast.Expr) []ast.Expr {
	switch x := x.(type) {
	case *ast.BinaryExpr:
		return chain(x, x.Op)
	case *ast.CallExpr:
		return x.Args
	case *ast.UnaryExpr:
		return parts(bare(x.X))
	case *ast.FuncLit:
		if len(x.Body.List) == 1 {
			return results(x.Body.List[0])
		}
	}
	return nil
}

func results(s ast.Stmt) []ast.Expr {
	if s, ok := s.(*ast.ReturnStmt); ok {
		return s.Results
	}
	return nil
}

func chain(x ast.Expr, op token.Token) []ast.Expr {
	if b, ok := x.(*ast.BinaryExpr); ok && b.Op == op {
		return append(chain(b.X, op), b.Y)
	}
	return []ast.Expr{x}
}

func bare(x ast.Expr) ast.Expr {
	for {
		p, ok := x.(*ast.ParenExpr)
		if !ok {
			return x
		}
		x = p.X
	}
}

func (m *mutation) offset(p token.Pos) int { return m.set.Position(p).Offset }

func (m *mutation) said(n ast.Node) string {
	return string(m.text[m.offset(n.Pos()):m.offset(n.End())])
}

func (m *mutation) replace(n ast.Node, by string) {
	m.edits = append(m.edits, edit{m.offset(n.Pos()), m.offset(n.End()), by})
}

func (m *mutation) insert(p token.Pos, by string) {
	m.edits = append(m.edits, edit{m.offset(p), m.offset(p), by})
}
