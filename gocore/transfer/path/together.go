package path

import (
	"time"

	"velocpy/gocore/cache"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/engine"
)

// MoveTogether carries out flushes with an encoding stage from one device, by one lane. What is to be encoded of them is encoded together, and then takes equal
// parts of the time.
func MoveTogether(c *cache.Cache, all []*engine.Transfer, o func(x *engine.Transfer) Options) []*Result {
	results := make([]*Result, len(all))
	var together, others []*Path
	for i, x := range all {
		p := &Path{c: c, x: x, version: x.Rec.Version, o: o(x)}
		results[i] = &p.result
		if p.result.Err = p.open(&p.result, checkpoint.Selection{Regions: p.version.Layout.All()}); p.result.Err != nil {
			continue
		}
		if err := p.begin(); err != nil {
			p.close(err)
		} else if p.lineage == nil && p.plan.Way == encoding.Encoded && isDevice(p.source) {
			together = append(together, p)
		} else {
			others = append(others, p)
		}
	}
	if len(together) > 0 {
		moveEncoded(together)
	}
	for _, p := range others {
		p.began = time.Now()
		err := p.runDifference()
		p.close(p.staged(err, time.Since(p.began)))
	}
	return results
}

// moveEncoded encodes checkpoints together. One that does not become smaller moves alone afterwards.
func moveEncoded(all []*Path) {
	failed := encodeOnDevice(all)
	took := time.Since(all[0].began) / time.Duration(len(all))
	for i, p := range all {
		err := p.conclude(failed[i])
		p.close(p.staged(err, took))
	}
}
