package description

import (
	"encoding/binary"

	"velocpy/gocore/model"
)

// Bytes is the layout of a checkpoint of one region without a name: so many unsigned bytes.
func Bytes(n int64) model.Layout {
	const dtype = "|u1"
	p := binary.LittleEndian.AppendUint32([]byte{magic, version, sequenceKind}, 1)
	p = binary.LittleEndian.AppendUint32(p, 0) // no name
	p = binary.LittleEndian.AppendUint32(append(p, numpy), 0)
	p = binary.LittleEndian.AppendUint32(p, uint32(len(dtype)))
	p = binary.LittleEndian.AppendUint64(append(p, dtype...), 1)
	p = binary.LittleEndian.AppendUint64(append(p, 1), uint64(n))
	p = binary.LittleEndian.AppendUint64(append(p, orderC), 0)
	p = binary.LittleEndian.AppendUint64(p, uint64(n))
	return model.Layout{Slot: n, Spans: []model.Span{{Bytes: n}}, Text: string(p)}
}
