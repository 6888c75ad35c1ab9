package catalog

import (
	"encoding/binary"

	"velocpy/gocore/model"
)

// Kinds of keys.
const (
	keyNumber = 0
	keyText   = 1
)

// keyBytes is the smallest size of a key.
const keyBytes = 6

// rawKey is a key inside a record, so that a lookup allocates nothing.
type rawKey struct {
	text   []byte
	number int64
	isText bool
}

func (k rawKey) key() model.Key {
	if k.isText {
		return model.TextKey(string(k.text))
	}
	return model.NumberKey(k.number)
}

// key decodes a key: its kind, a reserved byte, and either a number, or the length of a text and the text.
func (f *fields) key() (k rawKey, err error) {
	switch kind, reserved := f.u8(), f.u8(); {
	case reserved != 0:
		return k, malformed("a key's reserved byte is %d", reserved)
	case kind == keyNumber:
		k.number = int64(f.u64())
	case kind == keyText:
		k.isText = true
		n := f.u32()
		if n > MostName {
			return k, malformed("a key has %d bytes", n)
		}
		k.text = f.take(uint64(n))
	default:
		return k, later("a key is of kind %d", kind)
	}
	if f.short {
		return k, malformed("the body ends in a key")
	}
	return k, nil
}

func appendKey(to []byte, k model.Key) []byte {
	if !k.IsText {
		return appendNumbers(append(to, keyNumber, 0), k.Number)
	}
	to = binary.LittleEndian.AppendUint32(append(to, keyText, 0), uint32(len(k.Text)))
	return append(to, k.Text...)
}
