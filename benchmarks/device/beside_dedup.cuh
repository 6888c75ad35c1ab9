// Kernels beside those of de-duplication: the least that reading a region takes, changes of its chunks, and a comparison of gathered
// bytes. They share no step with the kernels that they are compared with.
#pragma once

#include "../../cuda/machine.cuh"

namespace velocpy {
namespace beside {

constexpr uint32_t kThreads = 256, kAtOnce = 8;  // loads in flight

// A range of vectors, whose 32-bit words are added to the number at `sum`.
struct Reading {
  uint64_t from, vectors, sum;
  uint32_t blocks, reserved;
};

VELOCPY_DEVICE void read(const Reading& p) {
  constexpr uint32_t kTile = kThreads * kAtOnce;
  auto* from = reinterpret_cast<const Vector*>(p.from);
  uint64_t sum = 0;
#pragma unroll 1
  for (uint64_t begin = static_cast<uint64_t>(block_index()) * kTile; begin < p.vectors; begin += static_cast<uint64_t>(p.blocks) * kTile) {
    Vector held[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i++) {
      uint64_t at = begin + i * kThreads + thread_index();
      held[i] = Vector{};
      if (at < p.vectors) held[i] = load(from + at);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i++)
#pragma unroll
      for (uint32_t w = 0; w < 4; w++) sum += held[i].word[w];
  }
#pragma unroll
  for (uint32_t flip = 1; flip < 32; flip *= 2) sum += from_lane(sum, flip);
  if (thread_index() % 32 == 0) add_to(reinterpret_cast<uint64_t*>(p.sum), sum);
}

// Chunks of a region, ascending, and bytes that are to be those of these chunks without gaps. The number at `wrong` counts vectors that
// differ.
struct Chosen {
  uint64_t region, chunks, count, data, wrong;
  uint32_t shift, value, blocks, reserved;
};

// Calls f with the number of each vector of the chosen chunks, and with its place in the region.
template <class F>
VELOCPY_DEVICE void for_each_vector(const Chosen& p, F f) {
  uint32_t shift = p.shift - 4;
  uint64_t vectors = p.count << shift;
#pragma unroll 1
  for (uint64_t v = static_cast<uint64_t>(block_index()) * kThreads + thread_index(); v < vectors;
       v += static_cast<uint64_t>(p.blocks) * kThreads) {
    uint64_t chunk = reinterpret_cast<const uint32_t*>(p.chunks)[v >> shift];
    f(v, reinterpret_cast<Vector*>(p.region) + (chunk << shift) + (v & ((1u << shift) - 1)));
  }
}

// Changes every word of the chosen chunks.
VELOCPY_DEVICE void change(const Chosen& p) {
  for_each_vector(p, [&](uint64_t, Vector* at) {
    Vector v = load(at);
#pragma unroll
    for (uint32_t w = 0; w < 4; w++) v.word[w] ^= p.value;
    store(at, v);
  });
}

VELOCPY_DEVICE void compare(const Chosen& p) {
  uint64_t wrong = 0;
  for_each_vector(p, [&](uint64_t v, Vector* at) {
    Vector want = load(at), got = load(reinterpret_cast<const Vector*>(p.data) + v);
    bool differs = false;
#pragma unroll
    for (uint32_t w = 0; w < 4; w++) differs |= want.word[w] != got.word[w];
    wrong += differs;
  });
  if (wrong != 0) add_to(reinterpret_cast<uint64_t*>(p.wrong), wrong);
}

// Numbers of the device for the host, which waits for an event behind the kernel.
struct Telling {
  uint64_t from, to;
};

VELOCPY_DEVICE void tell(const Telling& p) {
  if (thread_index() < 3) reinterpret_cast<uint64_t*>(p.to)[thread_index()] = reinterpret_cast<const uint64_t*>(p.from)[thread_index()];
}

}  // namespace beside
}  // namespace velocpy

VELOCPY_KERNEL(velocpy::beside::kThreads, 4) velocpy_beside_read(VELOCPY_PARAMETER(velocpy::beside::Reading) p) {
  velocpy::beside::read(p);
}
VELOCPY_KERNEL(velocpy::beside::kThreads, 4) velocpy_beside_change(VELOCPY_PARAMETER(velocpy::beside::Chosen) p) {
  velocpy::beside::change(p);
}
VELOCPY_KERNEL(velocpy::beside::kThreads, 4) velocpy_beside_compare(VELOCPY_PARAMETER(velocpy::beside::Chosen) p) {
  velocpy::beside::compare(p);
}
VELOCPY_KERNEL(32, 1) velocpy_beside_tell(VELOCPY_PARAMETER(velocpy::beside::Telling) p) { velocpy::beside::tell(p); }
