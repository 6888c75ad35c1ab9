package doctor

import (
	"fmt"

	"velocpy/gocore/base/quantity"
	"velocpy/gocore/device/topology"
)

// lookAtLink is called right after copies, because an idle link slows down to save power.
func (p *patient) lookAtLink() (topology.GPU, bool) {
	g, known := p.known(p.identity)
	if !known || g.MostGeneration < 0 || g.MostWidth < 0 {
		p.add(Finding{
			What: "link", Verdict: Absent, Text: "not known without NVML, or for this kind of link",
			Remedy: "Nothing has to be done: copies are only not held against it.",
		})
		return g, false
	}
	f := Finding{What: "link", Verdict: OK, Facts: map[string]any{
		"generation": g.Generation, "width": g.Width, "generation_max": g.MostGeneration, "width_max": g.MostWidth, "bytes_per_second": g.Rate(),
	}}
	f.Text = fmt.Sprintf("PCIe %d x%d now, %d x%d at most: %s each way", g.Generation, g.Width, g.MostGeneration, g.MostWidth, quantity.Rate(g.Rate()))
	if g.Width >= 0 && g.Width < g.MostWidth {
		f.Verdict = Warning
		f.Remedy = fmt.Sprintf("Only %d of %d lanes are in use: look at the slot, the riser and the firmware's division of lanes.", g.Width, g.MostWidth)
	}
	p.add(f)
	return g, true
}
