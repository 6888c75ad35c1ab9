// Package doctor examines the parts of this machine that the device tier uses: driver, GPUs, links, limits, kernels, and the rates of copies. Each
// finding has a verdict and, if there is one, a sentence with the remedy.
//
// The package is pure: the driver, the topology and the limits are inputs. An examination takes one to two seconds for each GPU and some 200 MiB of
// memory. It retains the primary context of each GPU while it examines it.
package doctor

import (
	"time"

	"velocpy/gocore/device/cuda"
	"velocpy/gocore/device/topology"
)

// Verdict is the judgement of a finding.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Warning Verdict = "warning"   // it works, and could work better
	Failed  Verdict = "failed"    // the device tier will not work
	Absent  Verdict = "not there" // it does not exist, which is no fault
)

// Finding is the result of one examination.
type Finding struct {
	What    string         `json:"what"`
	Device  *int           `json:"device,omitempty"` // number of the GPU that was examined
	Verdict Verdict        `json:"verdict"`
	Text    string         `json:"text"`
	Remedy  string         `json:"remedy,omitempty"`
	Facts   map[string]any `json:"facts,omitempty"` // sizes in bytes, rates in bytes/s
}

// Report has all findings.
type Report struct {
	Verdict  Verdict   `json:"verdict"` // the worst verdict of all; ok and not there count the same
	GPUs     int       `json:"gpus"`    // number of GPUs that stores can use
	Findings []Finding `json:"findings"`
}

// Machine is the examined machine.
type Machine struct {
	Driver   func() (cuda.Driver, error)
	Topology func() (topology.Source, error)
	Hidden   *string                // CUDA_VISIBLE_DEVICES; nil if it is not set
	Kernels  func() ([]byte, error) // the kernels' image for all kinds of GPUs
	Limits   Limits
	Now      func() time.Time // nil: the system's clock
	Piece    int64            // bytes of one copy; 0: 32 MiB
	Long     time.Duration    // duration of one measurement; 0: 100 ms
}

// examination is a report in progress.
type examination struct {
	Machine
	request Request
	report  Report
	source  topology.Source // nil if no topology is available
}

// Examine examines all that the request names. It returns no error: each failure is a finding.
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
