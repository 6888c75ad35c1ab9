package path

import (
	"unsafe"

	"go.uber.org/atomic"

	"velocpy/gocore/base/checksum"
	"velocpy/gocore/checkpoint"
	"velocpy/gocore/config"
	"velocpy/gocore/policy/engine"
	"velocpy/gocore/tier"
	"velocpy/gocore/transfer/copier"
)

// A fetch streams if its source can: the tier reads chunks to few buffers, and the goroutine that has read a chunk copies it to the caller's memory and hashes it
// in the same pass. New memory for all bytes would cost as much time as the disk.

// streamed is a fetch that streams.
type streamed struct {
	*Path
	source tier.Streamer
	s      *checkpoint.Stream
	unread atomic.Int64 // chunks that have not been read
	bytes  int64        // of all regions that the caller gets
}

// newStreamed returns the stream of a fetch; nil if it does not stream.
func newStreamed(p *Path) *streamed {
	if p.o.Into == nil || p.x.Stage != engine.Verbatim || p.movesEncoded() || p.decodes() {
		return nil
	}
	s, ok := p.source.(*objectSource)
	if !ok {
		return nil
	}
	source, ok := s.Source.(tier.Streamer)
	if !ok || source.MostStreamed() == 0 {
		return nil
	}
	st := &streamed{Path: p, source: source}
	st.s = p.reading.Stream(source.MostStreamed(), p.c.Set.Verifies != config.VerifyOff)
	for i := range p.o.Into.Regions {
		st.bytes += p.o.Into.Regions[i].Bytes
	}
	return st
}

// run reads all chunks. After an error the caller's memory may have some of the bytes.
func (st *streamed) run() error {
	chunks := st.s.Chunks
	st.unread.Store(int64(len(chunks)))
	err := st.source.Stream(len(chunks), func(i int) (at, n int64) { return chunks[i].Offset, chunks[i].Bytes }, st.take)
	if err != nil {
		return err
	}
	bad := st.s.Mismatch()
	//mutation:stream-unverified
	if bad >= 0 {
		return checkpoint.Damaged(bad, st.c.Tiers[st.x.From])
	}
	return nil
}

// take verifies and copies a chunk.
func (st *streamed) take(i int, p []byte) error {
	if st.unread.Sub(1) == 0 && st.o.Read != nil {
		st.o.Read()
	}
	c := &st.s.Chunks[i]
	if files, ok := st.source.(tier.Prover); ok && !st.s.Verifies() { // no checksum tells whose bytes these are, so the files must
		if err := files.Proves(c.Offset, c.Bytes); err != nil {
			return err
		}
	}
	var few [16]copier.Piece
	pieces, whole := few[:0], make([]hashedLeaves, 0, len(c.Runs))
	for j := range c.Runs {
		var w hashedLeaves
		pieces, w = st.add(pieces, &c.Runs[j], p[c.Runs[j].Offset-c.Offset:])
		whole = append(whole, w)
	}
	job := copier.NewJob(copier.Scatter, pieces, copier.Options{Checksum: st.s.Verifies(), Of: st.bytes})
	defer job.Free()
	if err := st.o.Into.Beside(func() { job.Run(0) }); err != nil {
		return err
	}
	for j, w := range whole {
		if w.piece < 0 {
			continue
		}
		for k, hash := range job.Leaves(w.piece) {
			st.s.Note(&c.Runs[j], w.first+k, hash)
		}
	}
	return nil
}

// hashedLeaves tells which leaves of a run the job hashes while it copies them: those of one piece, from the first one on. -1: none.
type hashedLeaves struct{ piece, first int }

// add appends the pieces of a run: the leaves that are wanted as a whole, and the wanted bytes of the leaf before these and of the leaf behind. The job hashes
// the first kind while it copies; add hashes all other leaves.
func (st *streamed) add(pieces []copier.Piece, r *checkpoint.Run, bytes []byte) ([]copier.Piece, hashedLeaves) {
	bytes = bytes[:r.Bytes]
	from := r.From - r.Offset // what is wanted, in bytes
	end := from + r.To.Bytes
	add := func(a, b int64) {
		if a < b {
			pieces = append(pieces, copier.Piece{
				Slot: unsafe.Pointer(unsafe.SliceData(bytes[a:])), Bytes: b - a, Mem: st.o.Into.Regions[r.Wanted].Mem, From: r.To.Offset + a - from,
			})
		}
	}
	if !st.s.Verifies() {
		add(from, end)
		return pieces, hashedLeaves{piece: -1}
	}
	first := (from + checksum.LeafBytes - 1) / checksum.LeafBytes * checksum.LeafBytes
	last := end
	if end < r.Bytes {
		last = end / checksum.LeafBytes * checksum.LeafBytes
	}
	w := hashedLeaves{piece: -1, first: int(first / checksum.LeafBytes)}
	if r.To.Bytes <= 0 || first >= last {
		add(from, end)
		first, last = 0, 0
	} else {
		add(from, first)
		w.piece = len(pieces)
		add(first, last)
		add(last, end)
	}
	for at := int64(0); at < r.Bytes; at += checksum.LeafBytes {
		if at < first || at >= last {
			st.s.Note(r, int(at/checksum.LeafBytes), checksum.Leaf(bytes[at:min(at+checksum.LeafBytes, r.Bytes)]))
		}
	}
	return pieces, w
}
