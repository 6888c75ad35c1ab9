package codec

import (
	"encoding/binary"
	"fmt"

	"velocpy/gocore/base/checksum"
)

// A container of version 2 has sections in place of chunks: compressors need more bytes than a chunk has to find what repeats. A section is decoded as a whole.

// SectionVersion is the version of the format in which containers have sections.
const SectionVersion = 2

// SectionBytes is the number of plain bytes of a section; the last one of a container has the rest. It is the length of a leaf of the checksums.
const SectionBytes = 16 * ChunkBytes

const chunksOfSection = SectionBytes / ChunkBytes

// sectionForm is the form of a section's payload. The numbers are part of the format.
type sectionForm uint8

const (
	sectionRaw    sectionForm = iota // the plain bytes
	sectionZstd                      // frames of Zstandard, of the planes
	sectionSnappy                    // a block of Snappy, of the planes
	sectionChunks                    // a container of version 1, which needs no reference
	sectionForms
)

// sectionEntry is the length of a section's part of the tables: hash, length, form.
const sectionEntry = 8 + 4 + 1

// sectionsOf is the number of sections of a region of so many bytes.
func sectionsOf(plain int) int { return (plain + SectionBytes - 1) / SectionBytes }

// sectionLength is the length of the plain bytes of section i.
func sectionLength(plain, i int) int { return min(SectionBytes, plain-i*SectionBytes) }

// sectionsAt is where the payloads of so many sections begin.
func sectionsAt(sections int) int { return roundUp(headerBytes+sectionEntry*sections, payloadAlign) }

// section is an entry of the tables, and where the payload begins in the container.
type section struct {
	hash      uint64
	at, bytes int
	form      sectionForm
}

// sectionTables are the parts of the tables in a container.
func sectionTables(container []byte, sections int) (hashes, lengths, forms []byte) {
	t := container[headerBytes : headerBytes+sectionEntry*sections]
	return t[:8*sections], t[8*sections : 12*sections], t[12*sections:]
}

// sealSections writes the header and the tables in front of payloads that are in place, one behind the other. It returns the container's length.
func sealSections(container []byte, k Kind, plain int, all []section) int {
	hashes, lengths, forms := sectionTables(container, len(all))
	end := sectionsAt(len(all))
	clear(container[headerBytes+sectionEntry*len(all) : end])
	for i, s := range all {
		binary.LittleEndian.PutUint64(hashes[8*i:], s.hash)
		binary.LittleEndian.PutUint32(lengths[4*i:], uint32(s.bytes))
		forms[i] = byte(s.form)
		end = roundUp(s.at+s.bytes, payloadAlign)
	}
	writeHeader(container, header{version: SectionVersion, kind: k, plain: plain, entries: len(all), total: end, tables: sectionsAt(len(all))})
	return end
}

// openSections verifies the tables of a container of version 2, whose header says that it has so many sections and bytes.
func openSections(container []byte, k Kind, plain, sections int) (*Container, error) {
	c := &Container{kind: k, plain: plain, sections: make([]section, sections)}
	hashes, lengths, forms := sectionTables(container, sections)
	at := sectionsAt(sections)
	for i := range c.sections {
		s := section{binary.LittleEndian.Uint64(hashes[8*i:]), at, int(binary.LittleEndian.Uint32(lengths[4*i:])), sectionForm(forms[i])}
		n := sectionLength(plain, i)
		if s.form >= sectionForms || s.bytes > n || s.form == sectionRaw && s.bytes != n || s.bytes > len(container)-at {
			return nil, fmt.Errorf("%w: section %d has form %d, payload %d B at %d", ErrCorrupt, i, s.form, s.bytes, at)
		}
		c.sections[i], at = s, roundUp(at+s.bytes, payloadAlign)
	}
	if at != len(container) {
		return nil, fmt.Errorf("%w: the tables do not fit the payloads", ErrCorrupt)
	}
	c.payloads = container
	return c, nil
}

// decodeSections is DecodeChunks for a container that has sections. Of one that is wanted in part all is decoded, in other memory.
func (c *Container) decodeSections(dst []byte, from, to int) error {
	if from == to {
		return nil
	}
	d := expanders.Get().(*expander)
	defer expanders.Put(d)
	for i := from / chunksOfSection; i*chunksOfSection < to; i++ {
		n, begin := sectionLength(c.plain, i), (i*chunksOfSection-from)*ChunkBytes
		if begin >= 0 && begin+n <= len(dst) {
			if err := c.decodeSection(d, dst[begin:begin+n], i); err != nil {
				return err
			}
			continue
		}
		whole := d.whole[:n]
		if err := c.decodeSection(d, whole, i); err != nil {
			return err
		}
		copy(dst[max(begin, 0):], whole[max(-begin, 0):])
	}
	return nil
}

// decodeSection decodes section i and verifies its hash.
func (c *Container) decodeSection(d *expander, dst []byte, i int) error {
	s := &c.sections[i]
	if err := d.expand(dst, c.payloads[s.at:s.at+s.bytes:s.at+s.bytes], s.form, c.kind); err != nil {
		return fmt.Errorf("%w: section %d: %w", ErrCorrupt, i, err)
	}
	if checksum.Leaf(dst) != s.hash {
		return fmt.Errorf("%w: wrong hash of section %d, form %d", ErrCorrupt, i, s.form)
	}
	return nil
}
