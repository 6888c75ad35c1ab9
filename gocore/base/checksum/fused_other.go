//go:build !amd64 || race

package checksum

import "github.com/zeebo/xxh3"

func leaf(p []byte) uint64 { return xxh3.Hash(p) }

func copyLeaf(dst, src []byte, _ bool) uint64 { return copyThenHash(dst, src) }

func (p *Parts) add(leaf, part []byte, _ uintptr) { copy(leaf[p.added:], part) }

func (p *Parts) sum(leaf []byte) uint64 { return Leaf(leaf) }
