package sim

import (
	"velocpy/gocore/policy/engine"
)

func uniform(n int, size int64) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = size
	}
	return s
}

func hostAndDisk(host int64) engine.Config {
	return engine.Config{
		Tiers:    []engine.TierConfig{{Name: "host", Capacity: host, Grain: 64}, {Name: "disk", Capacity: 1 << 40, Grain: 4096}},
		Prefetch: true, Guess: true,
	}
}
