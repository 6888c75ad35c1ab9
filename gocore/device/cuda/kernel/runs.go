package kernel

import (
	"encoding/binary"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/device"
)

// run is a dense piece.
type run struct {
	to, from uint64
	bytes    int64
	sum      int // index of the hash of its first leaf
}

// runLayout is the struct Pieces of cuda/parameters.h for that many pieces.
type runLayout int

const (
	manyRuns runLayout = 1020
	fewRuns  runLayout = 28
)

// Offsets of the single numbers.
const (
	runSums   = 0
	runCount  = 8
	runUnits  = 12
	runUnit   = 16
	runHeader = 24
)

func (n runLayout) to(i int) int    { return runHeader + 8*i }
func (n runLayout) from(i int) int  { return n.to(int(n)) + 8*i }
func (n runLayout) bytes(i int) int { return n.from(int(n)) + 8*i }
func (n runLayout) first(i int) int { return n.bytes(int(n)) + 4*i }
func (n runLayout) sum(i int) int   { return n.first(int(n)) + 4*i }
func (n runLayout) size() int       { return n.sum(int(n)) }

// launchRuns adds the launches of a kernel for dense pieces.
func (p *Plan) launchRuns(name string, runs []run, sums device.Address) {
	unit, threads := int64(packUnit), packThreads
	if name != pack {
		unit, threads = checksum.LeafBytes, sumThreads
	}
	for len(runs) > 0 {
		layout, launched := manyRuns, name
		if len(runs) <= int(fewRuns) {
			layout, launched = fewRuns, name+few
		}
		b := p.buffer(layout == fewRuns, layout.size())
		count, units := 0, int64(0)
		for ; count < min(len(runs), int(layout)); count++ {
			r := &runs[count]
			need := (r.bytes-1)/unit + 1
			if count > 0 && units+need > maxUnits {
				break
			}
			binary.LittleEndian.PutUint64(b[layout.to(count):], r.to)
			binary.LittleEndian.PutUint64(b[layout.from(count):], r.from)
			binary.LittleEndian.PutUint64(b[layout.bytes(count):], uint64(r.bytes))
			binary.LittleEndian.PutUint32(b[layout.first(count):], uint32(units))
			binary.LittleEndian.PutUint32(b[layout.sum(count):], uint32(r.sum))
			units += need
		}
		binary.LittleEndian.PutUint64(b[runSums:], uint64(sums))
		binary.LittleEndian.PutUint32(b[runCount:], uint32(count))
		binary.LittleEndian.PutUint32(b[runUnits:], uint32(units))
		binary.LittleEndian.PutUint32(b[runUnit:], uint32(unit))
		p.launches = append(p.launches, Launch{Kernel: launched, Blocks: int(units), Threads: threads, Parameter: b})
		runs = runs[count:]
	}
}
