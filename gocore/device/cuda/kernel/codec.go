package kernel

import (
	"cmp"
	"encoding/binary"
	"slices"

	"velocpy/gocore/device"
	"velocpy/gocore/reduction/codec"
)

// The kernels of the codec. Those that encode and decode exist for each kind of elements, whose name is in theirs, without and with references. They are in a
// module of their own.
const (
	codecEncode     = "velocpy_codec_encode_"
	codecDecode     = "velocpy_codec_decode_"
	codecReferenced = "_reference" // behind the name of the kind
	codecLocate     = "velocpy_codec_locate"
	codecClear      = "velocpy_codec_clear"
)

// codecKinds are the kinds that have kernels, by their names. Integers use those of floats of their size, without the mode Exp.
var codecKinds = map[string]codec.Kind{
	"bytes": codec.Int8, "fp16": codec.Float16, "bf16": codec.BFloat16, "fp32": codec.Float32, "fp64": codec.Float64,
}

// codecKind is the name of a kind in those of its kernels.
func codecKind(k codec.Kind) string {
	switch {
	case k == codec.Float16:
		return "fp16"
	case k.Word == 2:
		return "bf16"
	case k.Word == 4:
		return "fp32"
	case k.Word == 8:
		return "fp64"
	}
	return "bytes"
}

// CodecNames lists the kernels that Encode and Decode of a Plan may launch; the codec's module must contain them.
func CodecNames() []string {
	all := []string{codecLocate, codecClear}
	for kind := range codecKinds {
		all = append(all, codecEncode+kind, codecDecode+kind, codecEncode+kind+codecReferenced, codecDecode+kind+codecReferenced)
	}
	slices.Sort(all)
	return all
}

const (
	codecThreads   = 256
	mostContainers = 126  // of one launch
	clearWords     = 2048 // that one block of threads clears
)

// Offsets in the struct Containers of cuda/parameters.h, and its size.
const (
	codecScratch   = 0
	codecResults   = 8
	codecCount     = 16
	codecBlocks    = 20
	codecModes     = 24
	codecPlain     = 32
	codecContainer = codecPlain + 8*mostContainers
	codecBytes     = codecContainer + 8*mostContainers
	codecLength    = codecBytes + 4*mostContainers
	codecFirst     = codecLength + 4*mostContainers
	codecResult    = codecFirst + 4*mostContainers
	codecSize      = codecResult + 4*mostContainers
)

// The struct Referenced begins with a Containers. Here is where its references are, and its size.
const (
	codecReference = codecSize
	referencedSize = codecReference + 8*mostContainers
)

// containersSize is the size of a parameter with containers that have references, or none.
func containersSize(referenced bool) int {
	if referenced {
		return referencedSize
	}
	return codecSize
}

// clearSize is the size of the struct Clearing: an address, and a number of words.
const clearSize = 16

// permitted is the part of a set of modes that works for a container.
func permitted(c *device.Container, modes codec.Modes) codec.Modes {
	set := codec.Only(codec.Const, codec.Diff)
	if c.Kind.Float() {
		set |= codec.Only(codec.Exp)
	}
	if c.Reference != 0 {
		set |= codec.Referenced
	}
	return modes&set | codec.Only()
}

// together are containers of the same kernel and modes, by their indices.
type together struct {
	kind  string
	modes codec.Modes
	index []int
}

// kernel is the name of the kernel that encodes or decodes the containers. Where no mode needs a reference, none is read.
func (g *together) kernel(what string) string {
	if g.referenced() {
		return what + g.kind + codecReferenced
	}
	return what + g.kind
}

func (g *together) referenced() bool { return g.modes&codec.Referenced != 0 }

// group divides containers into launches.
func group(all []device.Container, modes func(*device.Container) codec.Modes) (groups []together) {
	one := make([]together, len(all))
	for i := range all {
		one[i] = together{codecKind(all[i].Kind), permitted(&all[i], modes(&all[i])), []int{i}}
	}
	slices.SortStableFunc(one, func(a, b together) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.modes, b.modes)) })
	for _, g := range one {
		if last := len(groups) - 1; last >= 0 && groups[last].kind == g.kind && groups[last].modes == g.modes && len(groups[last].index) < mostContainers {
			groups[last].index = append(groups[last].index, g.index...)
		} else {
			groups = append(groups, g)
		}
	}
	return groups
}

// Encode encodes containers with device.ScratchFor(all) bytes of scratch memory, and writes their lengths as words to results, by container.
func (p *Plan) Encode(all []device.Container, scratch, results device.Address) {
	if len(all) == 0 {
		return
	}
	p.clear(scratch, blocksOf(all))
	for _, g := range group(all, func(c *device.Container) codec.Modes { return c.Modes }) {
		b, blocks := p.containers(&g, all, scratch, results)
		p.launches = append(p.launches, Launch{Kernel: g.kernel(codecEncode), Blocks: blocks, Threads: codecThreads, Parameter: b})
		scratch += device.Address(8 * blocks)
	}
}

// Decode decodes containers likewise, and sets the words of damaged ones to 1. It leaves the others alone.
func (p *Plan) Decode(all []device.Container, scratch, results device.Address) {
	for _, g := range group(all, func(*device.Container) codec.Modes { return codec.AllModes }) {
		b, blocks := p.containers(&g, all, scratch, results)
		p.launches = append(p.launches,
			Launch{Kernel: codecLocate, Blocks: len(g.index), Threads: codecThreads, Parameter: b[:codecSize]},
			Launch{Kernel: g.kernel(codecDecode), Blocks: blocks, Threads: codecThreads, Parameter: b})
		scratch += device.Address(8 * blocks)
	}
}

// blocksOf is the number of chunks of all containers.
func blocksOf(all []device.Container) (blocks int) {
	for i := range all {
		blocks += codec.Chunks(int(all[i].Bytes))
	}
	return blocks
}

// clear adds a launch that clears words.
func (p *Plan) clear(at device.Address, words int) {
	b := p.buffer(true, clearSize)
	binary.LittleEndian.PutUint64(b, uint64(at))
	binary.LittleEndian.PutUint64(b[8:], uint64(words))
	p.launches = append(p.launches, Launch{Kernel: codecClear, Blocks: (words-1)/clearWords + 1, Threads: codecThreads, Parameter: b})
}

// containers fills a parameter, and returns it with the number of blocks.
func (p *Plan) containers(g *together, all []device.Container, scratch, results device.Address) (b []byte, blocks int) {
	b = p.buffer(false, containersSize(g.referenced()))
	for i, index := range g.index {
		c := &all[index]
		binary.LittleEndian.PutUint64(b[codecPlain+8*i:], uint64(c.Plain))
		binary.LittleEndian.PutUint64(b[codecContainer+8*i:], uint64(c.At))
		binary.LittleEndian.PutUint32(b[codecBytes+4*i:], uint32(c.Bytes))
		binary.LittleEndian.PutUint32(b[codecLength+4*i:], uint32(c.Length))
		binary.LittleEndian.PutUint32(b[codecFirst+4*i:], uint32(blocks))
		binary.LittleEndian.PutUint32(b[codecResult+4*i:], uint32(index))
		if g.referenced() {
			binary.LittleEndian.PutUint64(b[codecReference+8*i:], uint64(c.Reference))
		}
		blocks += codec.Chunks(int(c.Bytes))
	}
	binary.LittleEndian.PutUint64(b[codecScratch:], uint64(scratch))
	binary.LittleEndian.PutUint64(b[codecResults:], uint64(results))
	binary.LittleEndian.PutUint32(b[codecCount:], uint32(len(g.index)))
	binary.LittleEndian.PutUint32(b[codecBlocks:], uint32(blocks))
	binary.LittleEndian.PutUint32(b[codecModes:], uint32(g.modes))
	return b, blocks
}
