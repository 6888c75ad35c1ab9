package kernel

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/reduction/codec"
)

// header is the C++ header, which asserts its numbers at compile time.
func header(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../cuda/parameters.h")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLayoutIsTheHeaders(t *testing.T) {
	ours := map[string]int{}
	for name, n := range map[string]runLayout{"ManyPieces": manyRuns, "FewPieces": fewRuns} {
		for member, at := range map[string]int{
			"sums": runSums, "count": runCount, "units": runUnits, "unit": runUnit,
			"to": n.to(0), "from": n.from(0), "bytes": n.bytes(0), "first": n.first(0), "sum": n.sum(0),
		} {
			ours[name+", "+member] = at
		}
		ours[name] = n.size()
	}
	for name, n := range map[string]arrayLayout{"ManyArrays": manyArrays, "FewArrays": fewArrays} {
		for member, at := range map[string]int{
			"count": arrayCount, "units": arrayUnits, "slot": n.slot(0), "mem": n.mem(0), "elements": n.elements(0),
			"first": n.first(0), "layout": n.layout(0), "stride": n.stride(0), "length": n.length(0),
		} {
			ours[name+", "+member] = at
		}
		ours[name] = n.size()
	}
	found := regexp.MustCompile(`(?m)^VELOCPY_(?:SIZE|OFFSET)\((\w+(?:, [a-z]+)?), (\d+), (\d+)\);$`).FindAllStringSubmatch(header(t), -1)
	for _, m := range found {
		for i, size := range []string{"Many", "Few"} {
			name := size + m[1]
			want, _ := strconv.Atoi(m[2+i])
			if got, known := ours[name]; !known || got != want {
				t.Errorf("%s: %d here, %d in the header", name, got, want)
			}
			delete(ours, name)
		}
	}
	if len(ours) > 0 {
		t.Errorf("not in the header: %v", ours)
	}
	for _, n := range []int{manyRuns.size(), manyArrays.size()} {
		if n > largestMany || n > 32764 {
			t.Errorf("a parameter of %d bytes", n)
		}
	}
	if largestFew != max(fewRuns.size(), fewArrays.size()) {
		t.Errorf("the largest small parameter has %d bytes", max(fewRuns.size(), fewArrays.size()))
	}
}

func TestLayoutOfContainersIsTheHeaders(t *testing.T) {
	text := header(t)
	ours := map[string]int{
		"count": codecCount, "plain": codecPlain, "container": codecContainer, "bytes": codecBytes, "length": codecLength, "first": codecFirst, "result": codecResult,
		"containers": 0, "reference": codecReference,
	}
	for _, m := range regexp.MustCompile(`offsetof\((?:Containers|Referenced), (\w+)\) == (\d+)`).FindAllStringSubmatch(text, -1) {
		want, _ := strconv.Atoi(m[2])
		if got, known := ours[m[1]]; !known || got != want {
			t.Errorf("%s: %d here, %d in the header", m[1], got, want)
		}
		delete(ours, m[1])
	}
	if len(ours) > 0 {
		t.Errorf("not in the header: %v", ours)
	}
	for name, size := range map[string]int{"Containers": codecSize, "Referenced": referencedSize, "Clearing": clearSize} {
		m := regexp.MustCompile(`sizeof\(` + name + `\) == (\d+)`).FindStringSubmatch(text)
		if m == nil || m[1] != strconv.Itoa(size) {
			t.Errorf("%s: %d bytes here, %q in the header", name, size, m)
		}
	}
}

func TestConstantsAreTheHeaders(t *testing.T) {
	text := header(t)
	for name, want := range map[string]int{
		"kLeafBytes": checksum.LeafBytes, "kStridedElements": straightUnit, "kSmallSide": smallSide, "kLargeSide": largeSide,
		"kPackThreads": packThreads, "kSumThreads": sumThreads, "kStridedThreads": stridedThreads,
		"kCodecThreads": codecThreads, "kChunkBytes": codec.ChunkBytes, "kLocateChunks": locateChunks,
		"kContainers": mostContainers, "kClearWords": clearWords,
	} {
		m := regexp.MustCompile(`constexpr uint32_t ` + name + ` = (\d+)(?: << (\d+))?;`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s is not in the header", name)
			continue
		}
		got, _ := strconv.Atoi(m[1])
		shift, _ := strconv.Atoi(m[2])
		if got<<shift != want {
			t.Errorf("%s: %d here, %d in the header", name, want, got<<shift)
		}
	}
}

func TestEveryKernelIsThereAndHasATwin(t *testing.T) {
	entries := map[string]bool{}
	for _, file := range []string{"velocpy_kernels.cu", "velocpy_codec.cu", "velocpy_reduction.cu", "velocpy_dedup.cu"} {
		text, err := os.ReadFile("../../../../cuda/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`VELOCPY_KERNEL\([\w:]+, \d\) (\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			entries[m[1]] = true
		}
	}
	for _, name := range slices.Concat(Names(), CodecNames(), DedupNames()) {
		if !entries[name] {
			t.Errorf("%s is not in the source", name)
		}
		if Twin(name) == nil {
			t.Errorf("%s has no twin", name)
		}
		delete(entries, name)
	}
	for _, name := range codecKernels() {
		if !entries[name] {
			t.Errorf("%s is not in the source", name)
		}
		delete(entries, name)
	}
	if len(entries) > 0 {
		t.Errorf("not known here: %v", entries)
	}
	if Twin("velocpy_nothing") != nil {
		t.Error("a twin of nothing")
	}
}
