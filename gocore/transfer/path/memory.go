package path

// hostMemory is bytes that the host can address: a slot of the host tier, or memory beside the cache.
type hostMemory struct{ bytes []byte }

func (m *hostMemory) at(bytes []byte) *hostMemory {
	m.bytes = bytes
	return m
}

func (m *hostMemory) prepare() error { return nil }
func (m *hostMemory) close()         {}

func (m *hostMemory) Bytes() []byte { return m.bytes }

func (m *hostMemory) Read(at int64, to []byte, arrived func(at, n int64)) error {
	copy(to, m.bytes[at:])
	arrived(0, int64(len(to)))
	return nil
}

func (m *hostMemory) Write(at int64, p []byte) error {
	copy(m.bytes[at:], p)
	return nil
}
