// Package doctor looks at what the device tier will meet on this machine: driver, GPUs, links, limits, kernels, and the rates of
// copies. Each finding has a verdict and, where something can be done, a sentence that says what.
//
// It is pure: the driver, the topology and the limits are inputs. It takes a second or two for each GPU, some 200 MiB of memory, and
// the primary context of each GPU for as long as it looks.
package doctor

import (
	"time"

	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/topology"
)

// Verdict is what a finding means.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warning"   // it works, and could work better
	Failed  Verdict = "failed"    // the device tier will not work
	Absent  Verdict = "not there" // which is no fault
)

// Finding is one thing that was looked at.
type Finding struct {
	What    string         `json:"what"`
	Device  *int           `json:"device,omitempty"` // the number of the GPU that it is about
	Verdict Verdict        `json:"verdict"`
	Text    string         `json:"text"`
	Remedy  string         `json:"remedy,omitempty"`
	Facts   map[string]any `json:"facts,omitempty"` // bytes, and bytes/s
}

// Report is everything that was found.
type Report struct {
	Verdict  Verdict   `json:"verdict"` // the worst of all, where ok and not there are the same
	GPUs     int       `json:"gpus"`    // that stores can use
	Findings []Finding `json:"findings"`
}

// Machine is what is looked at.
type Machine struct {
	Driver   func() (cuda.Driver, error)
	Topology func() (topology.Source, error)
	Hidden   *string                // CUDA_VISIBLE_DEVICES, nil if it is not set
	Kernels  func() ([]byte, error) // the image for all kinds of GPUs
	Limits   Limits
	Now      func() time.Time // nil: the clock
	Piece    int64            // bytes of one copy; 0: 32 MiB
	Long     time.Duration    // of one measurement; 0: 100 ms
}

// examination is a report in the making.
type examination struct {
	Machine
	request Request
	report  Report
	source  topology.Source // nil if nobody knows
}

// Examine looks at everything that the request names. It fails in nothing: what fails is a finding.
func Examine(m Machine, q Request) Report {
	if m.Now == nil {
		m.Now = time.Now
	}
	if m.Piece == 0 {
		m.Piece = 32 << 20
	}
	if m.Long == 0 {
		m.Long = 100 * time.Millisecond
	}
	x := &examination{Machine: m, request: q, report: Report{Verdict: OK}}
	driver := x.lookAtDriver()
	x.lookAtTopology()
	defer x.closeTopology()
	image := x.lookAtKernels(driver != nil)
	x.lookAtLimits()
	x.lookAtDevices(driver, image)
	return x.report
}

func (x *examination) add(f Finding) {
	x.report.Findings = append(x.report.Findings, f)
	if f.Verdict == Failed || f.Verdict == Warning && x.report.Verdict == OK {
		x.report.Verdict = f.Verdict
	}
}
