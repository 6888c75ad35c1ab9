package store

import (
	"math/rand/v2"

	"velocpy/gocore/base/status"
	"velocpy/gocore/base/strictjson"
	"velocpy/gocore/cache"
	"velocpy/gocore/figures"
	"velocpy/gocore/policy/encoding"
	"velocpy/gocore/policy/schedule"
	"velocpy/gocore/reduction/codec"
	"velocpy/gocore/reduction/difference"
	"velocpy/gocore/reduction/digest"
	"velocpy/gocore/reduction/object"
	"velocpy/gocore/reduction/record"
)

// Reduction says how the checkpoints of a history are reduced.
type Reduction struct {
	Method     string `json:"method"`
	Chunk      int    `json:"chunk"`      // bytes; of de-duplication; 0: defaultChunk
	Digest     string `json:"digest"`     // of de-duplication; "": defaultDigest
	Compressor string `json:"compressor"` // of the host; "": none

	Schedule *Schedule `json:"schedule"` // nil: none
}

// auto is the method that weighs the others. A device finds shifted duplicates by trees of digests, the host runs of them.
const auto = "auto"

// method is what a name of a method stands for.
type method struct {
	encodes encoding.Method
	removes difference.Method // 0: no duplicates are removed
	refers  bool              // checkpoints are encoded with earlier ones. It removes no duplicates, but its checkpoints have a lineage
}

// methods are the names of the methods, as callers give them.
var methods = map[string]method{
	"raw": {encodes: encoding.Raw}, "codec": {encodes: encoding.Codec}, auto: {encodes: encoding.Auto, removes: difference.Runs},
	"full": {encodes: encoding.Lineage, removes: difference.Full}, "basic": {encodes: encoding.Lineage, removes: difference.Basic},
	"list": {encodes: encoding.Lineage, removes: difference.List}, "tree": {encodes: encoding.Lineage, removes: difference.Tree},
	"runs": {encodes: encoding.Lineage, removes: difference.Runs}, "reference": {encodes: encoding.Lineage, removes: difference.Full, refers: true},
}

// hasChunks tells whether a method looks for duplicates.
func (m *method) hasChunks() bool { return m.removes != 0 && !m.refers }

var digests = map[string]digest.Kind{"xxh3": digest.XXH3, "murmur3": digest.Murmur3}

var compressors = map[string]codec.Compression{"": codec.NoCompression, "zstd": codec.Zstd, "s2": codec.S2, "huff0": codec.Huff0}

const (
	// defaultChunk keeps the digests of a tree below 4 % of the checkpoint.
	defaultChunk  = 1024
	defaultDigest = "xxh3"
)

// The memory of the record of a lineage's digests is this part of the host tier, within bounds. It is read as a whole when checkpoints are gone.
const (
	recordShare = 20
	leastRecord = 1 << 20
	mostRecord  = 64 << 20
)

// lineageShare is the part of the host tier that trees of digests may take beside the record.
const lineageShare = 4

// ParseReduction reads what a caller says. Anything that is not understood is an error.
func ParseReduction(text []byte) (r Reduction, err error) {
	if err := strictjson.Decode(text, &r); err != nil {
		return r, status.New(status.Invalid, "the reduction is not understood: %v", err)
	}
	return r, r.complete()
}

// complete fills in what is left open, and refuses what cannot be.
func (r *Reduction) complete() error {
	m, ok := methods[r.Method]
	switch {
	case !ok:
		return status.New(status.Invalid, "no method of reduction is called %.40q", r.Method)
	case (m.encodes != encoding.Codec && m.encodes != encoding.Lineage || m.refers) && r.Compressor != "":
		return status.New(status.Invalid, "the method %q has no compressor", r.Method)
	case compressors[r.Compressor] == codec.NoCompression && r.Compressor != "":
		return status.New(status.Invalid, "no compressor is called %.40q", r.Compressor)
	case !m.hasChunks() && (r.Chunk != 0 || r.Digest != ""):
		return status.New(status.Invalid, "the method %q removes no duplicates: it has neither chunks nor digests", r.Method)
	case !m.hasChunks():
		return nil
	}
	if r.Chunk == 0 {
		r.Chunk = defaultChunk
	}
	if r.Digest == "" {
		r.Digest = defaultDigest
	}
	if !difference.ValidChunk(r.Chunk) {
		return status.New(status.Invalid, "a chunk has a power of two of bytes, from %d to %d, not %d", difference.MinChunk, difference.MaxChunk, r.Chunk)
	}
	if digests[r.Digest] == 0 {
		return status.New(status.Invalid, "no digest is called %.40q", r.Digest)
	}
	return nil
}

// Reduce sets how the checkpoints of the history are reduced from now on. Those that exist stay as they are.
func (h *History) Reduce(r Reduction) error {
	if err := r.complete(); err != nil {
		return err
	}
	course, err := r.course()
	if err != nil {
		return err
	}
	if err := h.reduce(&r, course); err != nil || course == nil {
		return err
	}
	return h.s.PlanNow(course) // without the lock
}

func (h *History) reduce(r *Reduction, course *schedule.Course) error {
	s := h.s
	if err := s.EnterToWrite(); err != nil {
		return err
	}
	defer s.Leave()
	known := s.Reductions[h.h.Name]
	if known == nil {
		known = &cache.Reduction{}
		s.Reductions[h.h.Name] = known
	}
	if f := &known.Figures; known.Planner != nil && f.Method == r.Method && f.Chunk == r.Chunk && f.Digest == r.Digest && f.Compressor == r.Compressor {
		known.Begin(course)
		return nil
	}
	l, err := s.lineageOf(r)
	if err != nil {
		return err
	}
	known.Begin(course)
	if known.Anchor != nil {
		known.Anchor.End()
	}
	m := methods[r.Method]
	known.OnDevice, known.Residents = deviceMethod(r), nil
	s.EndIdleLineages()
	if known.OnDevice != nil && s.Set.Host != nil {
		s.SetLineagesAside()
	}
	known.Planner, known.Lineage, known.Refers = encoding.New(m.encodes, compressors[r.Compressor]), l, m.refers || m.encodes == encoding.Auto
	if s.Set.Host != nil && s.EncodesOnDevice(known) {
		s.SetStagingAside()
	}
	known.Figures.Method, known.Figures.Chunk, known.Figures.Digest = r.Method, r.Chunk, r.Digest
	known.Figures.Compressor = r.Compressor
	return nil
}

// deviceMethod says how devices de-duplicate; nil: the method or the digests are none of theirs, or a compressor of the host is to have the plain bytes.
func deviceMethod(r *Reduction) *cache.DeviceMethod {
	switch m := methods[r.Method].removes; {
	case r.Compressor != "", digests[r.Digest] != digest.XXH3:
	case m == difference.Basic, m == difference.List, m == difference.Tree:
		return &cache.DeviceMethod{Method: m, Chunk: r.Chunk}
	case r.Method == auto:
		return &cache.DeviceMethod{Method: difference.Tree, Chunk: r.Chunk}
	}
	return nil
}

// lineageOf begins a lineage; nil for a method that removes no duplicates.
func (s *Store) lineageOf(r *Reduction) (*cache.Lineage, error) {
	m := methods[r.Method]
	if m.removes == 0 {
		return nil, nil
	}
	o := object.Options{Method: m.removes, Chunk: r.Chunk, Kind: digests[r.Digest], Record: s.recordBytes(), References: m.refers}
	if m.refers {
		o.Chunk, o.Record = defaultChunk, 0
	}
	l, err := cache.NewLineage(o, rand.Uint64())
	if err != nil {
		return nil, status.Wrap(status.Invalid, err, "no lineage can be begun")
	}
	l.Sections, l.Most = compressors[r.Compressor] != codec.NoCompression, s.recordBytes()
	if s.Set.Host != nil { // without a host tier nothing is de-duplicated
		l.Most += *s.Set.Host / lineageShare
	}
	return l, nil
}

// recordBytes is the memory of a record of digests.
func (s *Store) recordBytes() int64 {
	host := int64(0)
	if s.Set.Host != nil {
		host = *s.Set.Host
	}
	return max(record.Memory(1), min(max(host/recordShare, leastRecord), mostRecord))
}

// reductionOf is what the reduction of a history did; nil without one.
func (s *Store) reductionOf(history string) *figures.Reduction {
	r := s.Reductions[history]
	if r == nil {
		return nil
	}
	f := r.Figures
	return &f
}
