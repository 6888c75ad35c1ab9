package kernel

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"velocpy/gocore/base/checksum"

	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// source is the kernels' own source, compiled for this processor (cuda/emulated describes the supported subset).
type source struct {
	t   testing.TB
	in  *bufio.Writer
	out io.Reader
}

// The program is compiled by the first test that needs it, into a folder that TestMain removes.
var (
	buildOnce   sync.Once
	buildFolder string
	buildText   []byte
	errBuild    error
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "kernels")
	if err != nil {
		panic(err)
	}
	buildFolder = folder
	status := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

func startSource(t *testing.T) *source {
	t.Helper()
	if underRace {
		t.Skip("the run without the race detector does it")
	}
	compiler := ""
	for _, name := range []string{"g++", "clang++"} {
		if found, err := exec.LookPath(name); err == nil {
			compiler = found
			break
		}
	}
	if compiler == "" {
		t.Skip("no C++ compiler")
	}
	program := filepath.Join(buildFolder, "kernels")
	buildOnce.Do(func() {
		flags := []string{"-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"}
		build := exec.Command(compiler, append(flags, "-x", "c++", "../../../../cuda/emulated/kernels.cpp", "-o", program)...)
		buildText, errBuild = build.CombinedOutput()
	})
	if errBuild != nil {
		t.Fatalf("%v\n%s", errBuild, buildText)
	}
	run := exec.Command(program)
	var complaints bytes.Buffer
	run.Stderr = &complaints
	in, _ := run.StdinPipe()
	out, _ := run.StdoutPipe()
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := run.Wait(); err != nil || complaints.Len() > 0 {
			t.Errorf("%v\n%s", err, complaints.String())
		}
	})
	return &source{t, bufio.NewWriter(in), out}
}

func (s *source) put(parts ...any) {
	for _, part := range parts {
		if text, ok := part.(string); ok {
			part = []byte(text)
		}
		if err := binary.Write(s.in, binary.LittleEndian, part); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *source) get(n int) []byte {
	b := make([]byte, n)
	if err := s.in.Flush(); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.ReadFull(s.out, b); err != nil {
		s.t.Fatalf("no answer: %v", err)
	}
	return b
}

func (s *source) hash(p []byte) uint64 {
	s.put(uint32(1), uint64(len(p)), p)
	return binary.LittleEndian.Uint64(s.get(8))
}

// there is the address of the memory in the other process, away from all other mappings.
const there = 0x3000_0000_0000

// run runs launches on a memory and returns its content afterwards.
func (s *source) run(memory []byte, launches []Launch) []byte {
	s.put(uint32(2), uint64(there), uint64(len(memory)), memory)
	for _, l := range launches {
		s.put(uint32(3), uint32(len(l.Kernel)), l.Kernel, uint32(l.Blocks), uint32(l.Threads), uint32(len(l.Parameter)), l.Parameter)
	}
	s.put(uint32(4))
	return s.get(len(memory))
}

func TestSourceHashes(t *testing.T) {
	s := startSource(t)
	data := make([]byte, 1<<20+7)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(data)
	lengths := []int{checksum.LeafBytes, checksum.LeafBytes - 1, checksum.LeafBytes + 1, 1 << 20}
	for n := range 4097 {
		lengths = append(lengths, n)
	}
	for range 100 {
		lengths = append(lengths, rand.IntN(1<<20))
	}
	for _, n := range lengths {
		at := n % 7
		if got, want := s.hash(data[at:at+n]), xxh3.Hash(data[at:at+n]); got != want {
			t.Fatalf("%d bytes: %#x, want %#x", n, got, want)
		}
	}
}

// All lengths around a block, through the kernels that hash whole leaves with many threads.
func TestSourceLeaves(t *testing.T) {
	s := startSource(t)
	lengths := []int{64 << 10, 64<<10 + 1, 65<<10 - 1, 128 << 10, 200<<10 + 333, checksum.LeafBytes - 1, checksum.LeafBytes, checksum.LeafBytes + 1, 2*checksum.LeafBytes + 240}
	for n := range 300 {
		lengths = append(lengths, n, 1024-150+n)
	}
	for block := 2; block < 20; block++ {
		lengths = append(lengths, 1024*block-1, 1024*block, 1024*block+1, 1024*block+65)
	}
	w := &work{}
	used := 0
	for i, n := range lengths {
		w.pieces = append(w.pieces, place{slot: used, mem: used + n + 64 + i%17, bytes: n})
		used += (2*n + 64 + 17 + 127) / 64 * 64
	}
	w.sums = used
	w.memory = make([]byte, used+8*Leaves(w.at(0)))
	_, _ = rand.NewChaCha8([32]byte{3}).Read(w.memory)
	for _, what := range []string{gather, hash} {
		sameBytes(t, s.run(w.memory, w.plan(there, what, true).Launches()), w.done(what, true))
	}
}

func TestSource(t *testing.T) {
	s := startSource(t)
	rapid.Check(t, func(t *rapid.T) {
		what, sums := drawTask(t)
		w := drawWork(t, rapid.SampledFrom([]int{1, 3, 12, 40}).Draw(t, "count"), 100_000, what == scatter)
		sameBytes(t, s.run(w.memory, w.plan(there, what, sums).Launches()), w.done(what, sums))
	})
}
