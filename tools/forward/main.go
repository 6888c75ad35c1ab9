// Command forward lists the functions through which the pinned go-nvml reaches NVIDIA's management library:
//
//	go -C tools run ./forward ../gocore/device/topology/nvml
//
// go-nvml leaves its functions undefined and trusts lazy binding: calling one that the installed library lacks, or any before the
// library was opened, ends the process. With forward.S, each is a jump through a table that answers with an error until it is filled.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/NVIDIA/go-nvml"

var called = regexp.MustCompile(`C\.(nvml[A-Z][A-Za-z0-9_]*)\(`)

func main() {
	if err := write(os.Args[1]); err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

func write(folder string) error {
	names, err := functions()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "names.h"), []byte(table(names)), 0o644)
}

// functions lists what the pinned go-nvml calls.
func functions() ([]string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = ".." // the project's module, whose pins count
	folder, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("where is %s? %w", module, err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "pkg", "nvml", "nvml.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, match := range called.FindAllSubmatch(source, -1) {
		names = append(names, string(match[1]))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

const notice = "Written by `make generate` from the functions that go-nvml calls. Do not edit."

func table(names []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "/* %s */\n", notice)
	for _, name := range names {
		fmt.Fprintf(&b, "NVML_FUNCTION(%s)\n", name)
	}
	return b.String()
}
