package catalog

import (
	"encoding/binary"

	"velocpy/gocore/model"
)

// Flags of a retention. A reader refuses unknown flags, so that a writer without the rule about the best checkpoints does not drop them.
const (
	flagNamed   = 1
	flagBest    = 2 // the keys are followed by the number of the best that stay, and the path to their number
	flagLargest = 4 // only together with flagBest
)

// nameBytes is the smallest size of a name in a path.
const nameBytes = 4

// parseRetention decodes a retention's body; nil: no policy.
func parseRetention(body []byte) (history uint32, r *model.Retention, err error) {
	f := fields{p: body}
	history = f.u32()
	flags := f.u32()
	r = &model.Retention{Named: flags&flagNamed != 0, Last: f.u64(), Every: f.u64()}
	count := f.u32()
	switch {
	case f.short || uint64(count) > uint64(len(f.p)/keyBytes):
		return 0, nil, malformed("the body is too short for %d keys", count)
	case flags&^(flagNamed|flagBest|flagLargest) != 0:
		return 0, nil, later("a retention has flags %#x", flags)
	case flags&(flagBest|flagLargest) == flagLargest:
		return 0, nil, malformed("the largest numbers are the best, and no number is named")
	}
	if count > 0 {
		r.Keys = make([]model.Key, count)
	}
	for i := range r.Keys {
		k, err := f.key()
		if err != nil {
			return 0, nil, err
		}
		r.Keys[i] = k.key()
	}
	if flags&flagBest != 0 {
		if r.Best, err = f.best(); err != nil {
			return 0, nil, err
		}
		r.Best.Largest = flags&flagLargest != 0
	}
	if r.None() {
		r = nil
	}
	return history, r, f.end()
}

// best decodes the number of the best checkpoints that stay, and the path to their number.
func (f *fields) best() (b model.Best, err error) {
	b.Count = f.u64()
	count := f.u32()
	switch {
	case f.short || uint64(count) > uint64(len(f.p)/nameBytes):
		return b, malformed("the body is too short for %d names", count)
	case b.Count == 0 || count == 0 || count > MostPath:
		return b, malformed("the best %d by a number behind %d names", b.Count, count)
	}
	b.By = make([]string, count)
	room := uint64(MostName)
	for i := range b.By {
		n := uint64(f.u32())
		if n > room {
			return b, malformed("the names have more than %d bytes", MostName)
		}
		room -= n
		b.By[i] = string(f.take(n))
	}
	return b, nil
}

// appendRetention appends a retention's item. Without a rule about the best ones it is that of version 0.1, byte for byte.
func appendRetention(to []byte, history uint32, r *model.Retention) []byte {
	to, start := beginItem(to, kindRetention)
	to = binary.LittleEndian.AppendUint32(to, history)
	to = binary.LittleEndian.AppendUint32(to, flagsOf(r))
	to = appendNumbers(to, r.Last, r.Every)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(r.Keys)))
	for _, k := range r.Keys {
		to = appendKey(to, k)
	}
	if r.Best.Count > 0 {
		to = appendBest(to, &r.Best)
	}
	return endItem(to, start)
}

// flagsOf returns the flags of a retention.
func flagsOf(r *model.Retention) (flags uint32) {
	if r.Named {
		flags = flagNamed
	}
	if r.Best.Count > 0 {
		flags |= flagBest
		if r.Best.Largest {
			flags |= flagLargest
		}
	}
	return flags
}

func appendBest(to []byte, b *model.Best) []byte {
	to = appendNumbers(to, b.Count)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(b.By)))
	for _, name := range b.By {
		to = binary.LittleEndian.AppendUint32(to, uint32(len(name)))
		to = append(to, name...)
	}
	return to
}
