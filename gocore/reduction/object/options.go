package object

import (
	"fmt"
	"math/bits"
	"runtime"

	"velocpy/gocore/model"
	"velocpy/gocore/reduction/dedup"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/regions"
)

// Defaults of Options.
const (
	DefaultSources = 64
	DefaultChain   = 8
)

// Options are those of a lineage; all of its checkpoints share them.
type Options struct {
	Method  difference.Method // how chunks are found and described
	Chunk   int               // bytes, a power of two from 32 to 4096
	Kind    digest.Kind       // hash function. Default: XXH3
	Lineage uint64            // number of the lineage, and seed of its digests: it must be random, but for the bits that Numbered reads
	First   uint32            // number of the first checkpoint. Default: 1
	Record  int64             // bytes of memory for the digests of earlier checkpoints
	// MaxSources bounds the sources of a checkpoint. Before it would have more, it stores the bytes anew that lie in the objects with the fewest of them;
	// if that does not help it becomes a base, which has no sources. Default: DefaultSources.
	MaxSources int
	// MaxChain bounds how many metadata of earlier checkpoints a reader needs to locate the bytes of one. Default: DefaultChain.
	MaxChain int
	// References: a checkpoint may be encoded with an earlier one of the same regions, which is its source then. For the method Full, without a compressor.
	References bool
	// Parallel runs work(0) to work(n-1), in any order and by several goroutines if it likes, and returns when all have returned. Default: as many
	// goroutines as Go runs at once.
	Parallel func(n int, work func(i int))

	handicap uint64 // tests: bytes by which a map counts as longer than it is
}

func (o *Options) complete() error {
	if o.First == 0 {
		o.First = 1
	}
	if o.MaxSources == 0 {
		o.MaxSources = DefaultSources
	}
	if o.MaxChain == 0 {
		o.MaxChain = DefaultChain
	}
	if o.Parallel == nil {
		o.Parallel = parallel
	}
	if o.References && o.Method != difference.Full {
		return fmt.Errorf("%w: references with the method %v", ErrOptions, o.Method)
	}
	if o.MaxSources < 0 || o.MaxSources > model.MostSources || o.MaxChain < 0 {
		return fmt.Errorf("%w: %d sources, chains of %d", ErrOptions, o.MaxSources, o.MaxChain)
	}
	return nil
}

// lineageOptions are the bits of a lineage's number that tell its options.
const lineageOptions = 1<<16 - 1

// Number returns a number for a lineage with these options, given a random one: its low 16 bits tell the options, as metadata of form 2 do not.
func (o *Options) Number(random uint64) uint64 { return random&^lineageOptions | o.bits() }

// Unnumbered returns a number for a lineage that no writer goes on with, given a random one: it tells no options.
func Unnumbered(random uint64) uint64 { return random &^ lineageOptions }

// Numbered tells whether a number is one that Number returns for these options. Of a lineage whose number is all random it tells so once in 65536 times.
func (o *Options) Numbered(lineage uint64) bool { return lineage&lineageOptions == o.bits() }

func (o *Options) bits() uint64 {
	kind := o.Kind
	if kind == 0 {
		kind = digest.XXH3
	}
	return uint64(o.Method)<<8 | uint64(kind)<<4 | uint64(bits.TrailingZeros(uint(o.Chunk)))
}

// dedup is the options for package dedup.
func (o *Options) dedup() dedup.Options {
	return dedup.Options{
		Method: o.Method, Chunk: o.Chunk, Kind: o.Kind, Seed: o.Lineage, Record: o.Record, MaxReferences: o.MaxSources,
		Apart: true, Blocks: true, Parallel: o.Parallel,
	}
}

// parallel runs work in several goroutines.
func parallel(n int, work func(i int)) {
	err := regions.EachGroup(runtime.GOMAXPROCS(0), n, func(_, i int) error {
		work(i)
		return nil
	})
	if err != nil { // work has panicked in another goroutine: without its result nothing here is right
		panic(err)
	}
}
