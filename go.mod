module velocpy

go 1.25.0

require (
	github.com/NVIDIA/go-nvml v0.13.0-1
	github.com/klauspost/compress v1.20.4
	github.com/tidwall/btree v1.8.1
	github.com/zeebo/xxh3 v1.1.0
	go.uber.org/atomic v1.12.0
	golang.org/x/sys v0.30.0
	pgregory.net/rapid v1.2.0
)

require github.com/klauspost/cpuid/v2 v2.2.10 // indirect
