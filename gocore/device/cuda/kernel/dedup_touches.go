package kernel

import (
	"encoding/binary"
	"strings"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/digest"
)

// dedupTouches is Touches for the kernels of de-duplication; false if the name is no such kernel's. The parameter of kernels that label chunks does not tell how many
// chunks there are. So of their arrays in the scratch memory it tells those whose length is known, and of the result the beginning.
func dedupTouches(name string, b []byte) (reads, writes []Range, known bool) {
	if dedupTwin(name) == nil {
		return nil, nil, false
	}
	switch name {
	case dedupFill:
		var p dedupFilling
		if decoded(b, &p) {
			writes = ranges(nil, p.At, 8*p.Words)
		}
	case dedupSweep:
		var p dedupSweeping
		if decoded(b, &p) {
			reads = ranges(ranges(nil, p.Record, dedupSlotBytes*p.Slots), p.Forgotten, 4*uint64(p.Count))
			writes = ranges(ranges(nil, p.To, dedupSlotBytes*p.ToSlots), p.Recorded, 8)
		}
	case dedupConsolidate:
		var p dedupConsolidated
		if decoded(b, &p) {
			reads, writes = p.touches()
		}
	default:
		reads, writes = launchTouches(name, b)
	}
	return reads, writes, true
}

// launchTouches is dedupTouches for the kernels that read regions or labels.
func launchTouches(name string, b []byte) (reads, writes []Range) {
	var regions dedupRegions
	if decoded(b, &regions) && regions.Count <= device.DedupLaunchRegions {
		switch name {
		case dedupList:
			return regions.listTouches()
		case dedupGather:
			return regions.sources(), begin(regions.Data)
		}
		return regions.scanTouches(strings.HasPrefix(name, dedupScanBlocks))
	}
	var labels dedupLabels
	if decoded(b, &labels) {
		return labels.touches(name)
	}
	return nil, nil
}

func decoded(b []byte, p any) bool {
	if len(b) != binary.Size(p) {
		return false
	}
	_, err := binary.Decode(b, binary.LittleEndian, p)
	return err == nil
}

// ranges adds a range, unless it is empty.
func ranges(to []Range, at, bytes uint64) []Range {
	if at == 0 || bytes == 0 {
		return to
	}
	return append(to, Range{device.Address(at), int64(bytes)})
}

// begin is the beginning of a result.
func begin(at uint64) []Range { return ranges(nil, at, 16) }

// sources are the bytes of the regions.
func (p *dedupRegions) sources() (all []Range) {
	for i := range p.Count {
		all = ranges(all, p.From[i], p.Bytes[i])
	}
	return all
}

func (p *dedupRegions) scanTouches(blocks bool) (reads, writes []Range) {
	for i := range p.Count {
		writes = ranges(writes, p.Leaves[i], digest.Bytes*up(p.Bytes[i], p.chunk()))
		writes = ranges(writes, p.Sums[i], 8*up(p.Bytes[i], digest.SumBytes))
		if blocks {
			writes = ranges(writes, p.Digests[i], digest.Bytes*up(p.Bytes[i], device.DedupBlockBytes))
		}
	}
	return p.sources(), ranges(writes, p.Marks, 4*uint64(p.Tiles)*p.tileWords())
}

func (p *dedupRegions) listTouches() (reads, writes []Range) {
	chunks := uint64(0)
	for i := range p.Count {
		chunks += up(p.Bytes[i], p.chunk())
	}
	words := uint64(p.Tiles) * p.tileWords()
	writes = ranges(ranges(nil, p.List, 4*chunks), p.Totals, device.DedupTotalBytes)
	writes = ranges(ranges(writes, p.Lost, 4*uint64(p.Count)), p.State, 8*up(words, device.DedupMarkWords))
	return ranges(nil, p.Marks, 4*words), writes
}

func (t *dedupLabels) touches(name string) (reads, writes []Range) {
	reads = ranges(ranges(nil, t.Table, device.DedupTableBytes*uint64(t.Regions)), t.Changed, 4*t.Words)
	writes = ranges(ranges(nil, t.Counts, device.DedupCountsBytes), t.Ends, device.DedupEndsBytes)
	record := ranges(nil, t.Record, dedupSlotBytes*t.Slots)
	switch name {
	case dedupAddNew:
		writes = append(writes, record...)
	case dedupGatherFirsts: // it uses nothing of the record, which the next checkpoint may change meanwhile
		return reads, append(writes, begin(t.Data)...)
	default:
		reads = append(reads, record...)
	}
	return ranges(reads, t.Before, 8), writes
}

func (p *dedupConsolidated) touches() (reads, writes []Range) {
	reads = ranges(ranges(nil, p.Sums, 8*p.SumWords), p.Changed, 8*p.ChangedWords)
	reads = ranges(reads, p.Totals, device.DedupTotalBytes*uint64(p.Launches))
	if p.Counts != 0 {
		reads = ranges(reads, p.Counts, device.DedupCountsBytes)
	}
	writes = ranges(begin(p.To), p.To, 8*p.SumWords)
	return reads, ranges(ranges(writes, p.Recorded, 8), p.Results, 8*DedupResults)
}
