// Copies dense pieces.
#pragma once

#include "machine.cuh"
#include "parameters.h"

namespace velocpy {

// The stores are whole aligned vectors, except for the first and the last few bytes, for any addresses. The loads are aligned too;
// they are shifted if the two addresses differ in alignment.
template <bool Shifted>
VELOCPY_DEVICE void copy_vectors(Vector* to, const Vector* from, uint32_t shift, uint32_t vectors) {
  constexpr uint32_t kAtOnce = Shifted ? 4 : 8;  // loads in flight; a shifted one takes two
  uint32_t v = thread_index();
  for (; v + (kAtOnce - 1) * kPackThreads < vectors; v += kAtOnce * kPackThreads) {
    Vector held[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i++) {
      const Vector* p = from + v + i * kPackThreads;
      held[i] = Shifted ? load_shifted(p, shift) : load(p);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i++) store(to + v + i * kPackThreads, held[i]);
  }
  for (; v < vectors; v += kPackThreads) store(to + v, Shifted ? load_shifted(from + v, shift) : load(from + v));
}

VELOCPY_DEVICE void copy_unit(uint64_t to, uint64_t from, uint32_t bytes) {
  uint32_t thread = thread_index();
  uint32_t head = static_cast<uint32_t>(-to) & 15;
  head = head < bytes ? head : bytes;
  auto copy_byte = [=](uint32_t i) { reinterpret_cast<uint8_t*>(to)[i] = reinterpret_cast<const uint8_t*>(from)[i]; };
  if (thread < head) copy_byte(thread);
  uint32_t vectors = (bytes - head) / 16, rest = head + vectors * 16;
  if (rest + thread < bytes) copy_byte(rest + thread);
  uint32_t shift = static_cast<uint32_t>(from + head) & 15;
  auto* target = reinterpret_cast<Vector*>(to + head);
  auto* source = reinterpret_cast<const Vector*>(from + head - shift);
  if (shift == 0)
    copy_vectors<false>(target, source, 0, vectors);
  else
    copy_vectors<true>(target, source, shift, vectors);
}

template <int N>
VELOCPY_DEVICE void pack(const Pieces<N>& p) {
  uint32_t piece = find(p.first, p.count, block_index());
  uint64_t begin = static_cast<uint64_t>(block_index() - p.first[piece]) * p.unit;
  uint64_t left = p.bytes[piece] - begin;
  copy_unit(p.to[piece] + begin, p.from[piece] + begin, left < p.unit ? static_cast<uint32_t>(left) : p.unit);
}

}  // namespace velocpy
