package description

import (
	"encoding/binary"

	"velocpy/gocore/model"
)

// Int64s returns the layout of a checkpoint with one region: a NumPy array of so many integers of 64 bits, in one dimension.
func Int64s(name string, count int) model.Layout {
	const dtype, item = "<i8", 8
	bytes := int64(count) * item
	p := []byte{magic, version, mappingKind}
	p = binary.LittleEndian.AppendUint32(p, 1)
	p = appendText(p, name)
	p = append(p, numpy)
	p = binary.LittleEndian.AppendUint32(p, 0)
	p = appendText(p, dtype)
	p = binary.LittleEndian.AppendUint64(p, item)
	p = append(p, 1)
	p = binary.LittleEndian.AppendUint64(p, uint64(count))
	p = append(p, orderC)
	p = binary.LittleEndian.AppendUint64(p, 0)
	p = binary.LittleEndian.AppendUint64(p, uint64(bytes))
	return model.Layout{Slot: bytes, Spans: []model.Span{{Bytes: bytes}}, Text: string(p)}
}

func appendText(p []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint32(p, uint32(len(text))), text...)
}
