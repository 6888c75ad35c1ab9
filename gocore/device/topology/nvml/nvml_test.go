package nvml

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"

	"velocpy/gocore/device/topology"
)

// A new version of go-nvml with functions that are not forwarded would bring the trap back.
func TestEveryFunctionOfTheModuleIsForwarded(t *testing.T) {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Skip("the module's sources are not at hand: ", err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "pkg", "nvml", "nvml.go"))
	if err != nil {
		t.Fatal(err)
	}
	want := names(regexp.MustCompile(`C\.(nvml[A-Z][A-Za-z0-9_]*)\(`), source)
	text, err := os.ReadFile("names.h")
	if err != nil {
		t.Fatal(err)
	}
	got := names(regexp.MustCompile(`NVML_FUNCTION\((\w+)\)`), text)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Fatalf("%d functions are forwarded, %d are called: run make generate", len(got), len(want))
	}
}

func names(pattern *regexp.Regexp, text []byte) []string {
	var found []string
	for _, match := range pattern.FindAllSubmatch(text, -1) {
		found = append(found, string(match[1]))
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestWithoutTheLibraryEveryCallIsAnError(t *testing.T) {
	if bound() {
		t.Skip("the library is there")
	}
	if _, err := Open(); !errors.Is(err, topology.ErrUnknown) {
		t.Fatalf("opened without the library: %v", err)
	}
	// The calls that would end the process if they were bound lazily.
	if _, code := nvml.DeviceGetCount(); code == nvml.SUCCESS {
		t.Fatal("devices counted without the library")
	}
	if _, code := nvml.SystemGetDriverVersion(); code == nvml.SUCCESS {
		t.Fatal("a driver version without the library")
	}
	if text := nvml.ErrorString(nvml.ERROR_UNKNOWN); text == "" {
		t.Fatal("no text for an error")
	}
}

// machine is a management library with one GPU that refuses to report its NUMA node.
func machine() *mock.Interface {
	device := &mock.Device{
		GetCurrPcieLinkGenerationFunc: func() (int, nvml.Return) { return 1, nvml.SUCCESS },
		GetCurrPcieLinkWidthFunc:      func() (int, nvml.Return) { return 16, nvml.SUCCESS },
		GetMaxPcieLinkGenerationFunc:  func() (int, nvml.Return) { return 5, nvml.SUCCESS },
		GetMaxPcieLinkWidthFunc:       func() (int, nvml.Return) { return 16, nvml.SUCCESS },
		GetNumaNodeIdFunc:             func() (int, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED },
		GetUUIDFunc:                   func() (string, nvml.Return) { return "GPU-1", nvml.SUCCESS },
		GetNameFunc:                   func() (string, nvml.Return) { return "Accelerator", nvml.SUCCESS },
		GetPciInfoFunc:                func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{Domain: 1, Bus: 0x1b}, nvml.SUCCESS },
		GetMemoryInfoFunc:             func() (nvml.Memory, nvml.Return) { return nvml.Memory{Free: 10, Total: 30}, nvml.SUCCESS },
		RegisterEventsFunc:            func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS },
	}
	events := []nvml.Return{nvml.ERROR_TIMEOUT, nvml.SUCCESS, nvml.ERROR_GPU_IS_LOST}
	set := &mock.EventSet{
		FreeFunc: func() nvml.Return { return nvml.SUCCESS },
		WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
			code := events[0]
			events = events[1:]
			return nvml.EventData{Device: device, EventData: 79}, code
		},
	}
	return &mock.Interface{
		InitFunc:                   func() nvml.Return { return nvml.SUCCESS },
		ShutdownFunc:               func() nvml.Return { return nvml.SUCCESS },
		DeviceGetCountFunc:         func() (int, nvml.Return) { return 1, nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(int) (nvml.Device, nvml.Return) { return device, nvml.SUCCESS },
		EventSetCreateFunc:         func() (nvml.EventSet, nvml.Return) { return set, nvml.SUCCESS },
		SystemGetDriverVersionFunc: func() (string, nvml.Return) { return "580.1", nvml.SUCCESS },
	}
}

func TestGPUsAreDescribed(t *testing.T) {
	s, err := open(machine())
	if err != nil {
		t.Fatal(err)
	}
	gpus, err := s.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	want := topology.GPU{
		UUID: "GPU-1", Name: "Accelerator", PCI: "00000001:1b:00.0", Generation: 1, Width: 16, MostGeneration: 5, MostWidth: 16,
		NUMA: -1, Free: 10, Total: 30,
	}
	if len(gpus) != 1 || gpus[0] != want {
		t.Fatalf("described as %+v, it is %+v", gpus, want)
	}
	if rate := gpus[0].Rate(); rate < 62e9 || rate > 64e9 {
		t.Fatalf("a link of generation 5 with 16 lanes carries %g bytes/s", rate)
	}
	if version, err := s.Driver(); err != nil || version != "580.1" {
		t.Fatal(version, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFaultsAreReportedUntilTheLibraryFails(t *testing.T) {
	s, err := open(machine())
	if err != nil {
		t.Fatal(err)
	}
	var faults []topology.Fault
	err = s.Watch(make(chan struct{}), func(f topology.Fault) { faults = append(faults, f) })
	if !errors.Is(err, topology.ErrUnknown) {
		t.Fatalf("the end of watching: %v", err)
	}
	if len(faults) != 1 || faults[0] != (topology.Fault{UUID: "GPU-1", Code: 79}) {
		t.Fatalf("faults: %v", faults)
	}
}
