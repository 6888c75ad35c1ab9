package lifecycle

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the diagram anew")

const (
	diagramFile  = "../../../docs/life-cycle.md"
	diagramBegin = "<!-- generated from gocore/policy/lifecycle: go test ./gocore/policy/lifecycle -rewrite -->\n"
	diagramEnd   = "<!-- end of the generated part -->\n"
)

func TestDiagramShowsTheTable(t *testing.T) {
	page, err := os.ReadFile(diagramFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), diagramBegin)
	old, after, ok2 := strings.Cut(rest, diagramEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no generated part", diagramFile)
	}
	if old == diagram() {
		return
	}
	if !*rewrite {
		t.Fatalf("%s is out of date: run go test ./gocore/policy/lifecycle -rewrite", diagramFile)
	}
	if err := os.WriteFile(diagramFile, []byte(before+diagramBegin+diagram()+diagramEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// diagram draws the table, then lists it.
func diagram() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> INIT\n")
	each(func(s State, e Event, to State) {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", s, to, e)
	})
	b.WriteString("```\n\n| state | event | next state |\n| --- | --- | --- |\n")
	each(func(s State, e Event, to State) {
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", s, e, to)
	})
	b.WriteString("\n| state | evictable | has the bytes | pinned | busy |\n| --- | --- | --- | --- | --- |\n")
	for s := range State(states) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", s, yes(s.Evictable()), yes(s.HasBytes()), yes(s.Pinned()), yes(s.Busy()))
	}
	return b.String()
}

func each(f func(State, Event, State)) {
	for s := range State(states) {
		for e := range Event(events) {
			if to, err := s.Next(e); err == nil {
				f(s, e, to)
			}
		}
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}
