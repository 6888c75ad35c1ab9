package vfs

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// The form of a recording, by which a process sends it to another one of the same version: numbers are varints, and texts and bytes have their length before them.

// errRecording: bytes that are no recording, or only a part of one.
var errRecording = errors.New("it is damaged")

// encode returns the form of a recording. The caller holds the lock.
func (l *recording) encode() (to []byte) {
	number := func(n int64) { to = binary.AppendVarint(to, n) }
	text := func(s string) {
		number(int64(len(s)))
		to = append(to, s...)
	}
	number(int64(len(l.Dirs)))
	for _, dir := range slices.Sorted(maps.Keys(l.Dirs)) {
		text(dir)
		number(int64(len(l.Dirs[dir])))
		for _, name := range l.Dirs[dir] {
			text(name)
		}
	}
	number(int64(len(l.Infos)))
	for _, name := range slices.Sorted(maps.Keys(l.Infos)) {
		info, kind := l.Infos[name], int64(0)
		if info.Dir {
			kind = 1
		}
		text(name)
		number(kind)
		number(info.Size)
		number(info.Held)
	}
	number(int64(len(l.Files)))
	for _, name := range slices.Sorted(maps.Keys(l.Files)) {
		of := l.Files[name]
		text(name)
		number(of.Size)
		number(int64(len(of.Pieces)))
		for i := range of.Pieces {
			p := &of.Pieces[i]
			number(p.From)
			text(string(p.Bytes))
			number(p.Zeros)
			number(p.Fails)
			number(int64(p.Errno))
		}
	}
	number(int64(len(l.Fails)))
	for _, key := range slices.Sorted(maps.Keys(l.Fails)) {
		text(key)
		number(int64(l.Fails[key]))
	}
	return to
}

// recordingReader reads the form of a recording. After the first error every number is 0, and every text is empty.
type recordingReader struct {
	rest []byte
	err  error
}

func (r *recordingReader) number() int64 {
	n, length := binary.Varint(r.rest)
	if length <= 0 {
		r.rest, r.err = nil, errRecording
		return 0
	}
	r.rest = r.rest[length:]
	return n
}

// count is a number of things that follow, each of which takes a byte or more.
func (r *recordingReader) count() int {
	n := r.number()
	if n < 0 || n > int64(len(r.rest)) {
		r.rest, r.err = nil, errRecording
		return 0
	}
	return int(n)
}

// bytes are a part of the recording, and no copy of it.
func (r *recordingReader) bytes() []byte {
	n := r.count()
	p := r.rest[:n:n]
	r.rest = r.rest[n:]
	return p
}

func (r *recordingReader) text() string { return string(r.bytes()) }

func decodeRecording(p []byte) (*recording, error) {
	l, r := &recording{Dirs: map[string][]string{}, Infos: map[string]Info{}, Files: map[string]*recordedFile{}, Fails: map[string]uint32{}}, &recordingReader{rest: p}
	for range r.count() {
		dir, names := r.text(), []string(nil)
		for range r.count() {
			names = append(names, r.text())
		}
		l.Dirs[dir] = names
	}
	for range r.count() {
		l.Infos[r.text()] = Info{Dir: r.number() != 0, Size: r.number(), Held: r.number()}
	}
	for range r.count() {
		name, of := r.text(), &recordedFile{Size: r.number()}
		for range r.count() {
			of.Pieces = append(of.Pieces, recordedPiece{From: r.number(), Bytes: r.bytes(), Zeros: r.number(), Fails: r.number(), Errno: uint32(r.number())})
		}
		l.Files[name] = of
	}
	for range r.count() {
		l.Fails[r.text()] = uint32(r.number())
	}
	if len(r.rest) > 0 {
		r.err = errRecording
	}
	return l, r.err
}
