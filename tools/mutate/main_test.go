package main

import (
	"go/format"
	"strings"
	"testing"
)

const source = `package p

func f(a, b, c bool, m map[int]*int, w int) (n int, err error) {
	//mutation:condition
	//mutation:second
	if a && (b || !c) {
		//mutation:inside
		n = g(w, 2)
	}
	// A comment above a marker.
	//mutation:define
	x, err := g(1, n), h()
	//mutation:element
	if m[n] != nil {
		w += x
	}
	if d := h() != nil; d {
		w++
	}
	//mutation:init
	if a = a || b; a {
		w++
	}
	switch {
	//mutation:case
	case a == b, c:
		w--
	}
	//mutation:spread
	l := append([]int(nil), []int{1}...)
	//mutation:sort
	each(l, func(a, b int) int { return g(a, b) })
	//mutation:return
	return len(l), err
}
`

func TestMutate(t *testing.T) {
	for _, c := range []struct{ marker, operation, before, after string }{
		{"condition", "true", "if a && (b || !c) {", "if (true || (a && (b || !c))) {"},
		{"second", "false at 0", "if a && (b || !c) {", "if (false && (a)) && (b || !c) {"},
		{"condition", "true at 1 0", "if a && (b || !c) {", "if a && ((true || (b)) || !c) {"},
		{"condition", "becomes next", "if a && (b || !c) {", ""},
		{"inside", "becomes up 1", "n = g(w, 2)", "n = (b || !c)"},
		{"inside", "times 128 at 0", "g(w, 2)", "g(((w) * 128), 2)"},
		{"inside", "drop 0", "g(w, 2)", "g(2)"},
		{"inside", "swap", "g(w, 2)", "g(2, w)"},
		{"inside", "remove", "n = g(w, 2)", "if false {\nn = g(w, 2)\n}"},
		{"inside", "remove 2", "", ""},
		{"define", "remove", "", ""},
		{"define", "becomes next 0 at 1", "x, err := g(1, n), h()", "x, err := g(1, n), (m[n])"},
		{"define", "clear", "", ""},
		{"element", "any", "m[n] != nil", "len(m) > 0"},
		{"init", "false at init 1", "a = a || b;", "a = a || (false && (b));"},
		{"case", "false", "case a == b, c:", "case (false && (a == b)), c:"},
		{"case", "true at 2", "", ""},
		{"spread", "drop 1", "append([]int(nil), []int{1}...)", "append([]int(nil))"},
		{"spread", "drop 0", "append([]int(nil), []int{1}...)", "append([]int{1}...)"},
		{"sort", "swap at 1 0", "g(a, b)", "g(b, a)"},
		{"return", "nil at 1", "return len(l), err", "return len(l), nil"},
		{"return", "nil", "", ""},
		{"return", "swap at 0", "", ""},
		{"return", "remove 0", "", ""},
		{"return", "behind 1", "", ""},
		{"return", "vanish", "", ""},
		{"nowhere", "true", "", ""},
	} {
		got, err := mutate([]byte(source), c.marker, strings.Fields(c.operation))
		if err == nil {
			_, err = format.Source(got)
		}
		if want := strings.Replace(source, c.before, c.after, 1); err == nil && string(got) != want {
			t.Errorf("%s, %s:\n%s", c.marker, c.operation, got)
		}
		if (c.after == "") != (err != nil) {
			t.Errorf("%s, %s: %v", c.marker, c.operation, err)
		}
	}
}

func TestStatements(t *testing.T) {
	const source = "package p\n\nfunc f() (n int, err error) {\n\t//mutation:x\n\tn, err = g(), h()\n\t//mutation:y\n\tn, err = i()\n\treturn n, err\n}\n"
	for _, c := range []struct{ marker, operation, body string }{
		{"x", "behind 1", "n, err = i() n, err = g(), h() return n, err"},
		{"x", "remove 2", "if false { n, err = g(), h() n, err = i() } return n, err"},
		{"y", "retry", "n, err = g(), h() n, err = i() if err != nil { n, err = i() } return n, err"},
		{"y", "clear", "n, err = g(), h() n, err = i() err = nil return n, err"},
	} {
		got, err := mutate([]byte(source), c.marker, strings.Fields(c.operation))
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, line := range strings.Split(string(got), "\n")[3:] {
			if !strings.Contains(line, "//mutation") {
				words = append(words, strings.Fields(line)...)
			}
		}
		if is := strings.TrimSuffix(strings.Join(words, " "), " }"); is != c.body {
			t.Errorf("%s, %s: %s", c.marker, c.operation, is)
		}
	}
}

func TestMarkersStandAboveStatements(t *testing.T) {
	for _, text := range []string{
		"package p\n\n//mutation:x\n\nfunc f() {}\n",
		"package p\n\nfunc f() {\n\t//mutation:x\n\n\treturn\n}\n",
		"package p\n\nfunc f() {\n\t//mutation:x\n\treturn\n}\n\nfunc g() {\n\t//mutation:x\n\treturn\n}\n",
	} {
		if got, err := mutate([]byte(text), "x", []string{"remove"}); err == nil {
			t.Errorf("%s", got)
		}
	}
}
