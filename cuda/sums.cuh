// Copies dense pieces and computes the hash of every leaf in the same pass, or computes only the hashes.
//
// One block of threads processes one leaf. Eight warps stream it: each sums whole blocks of the hash, two at a time, into shared
// memory. The ninth warp runs the chain over these sums, one stage behind the others, so that little of it is left after the last
// byte. It reads the end of the leaf, which is not summed by block, itself at the start.
#pragma once

#include <type_traits>

#include "machine.cuh"
#include "parameters.h"
#include "xxh3.h"

namespace velocpy {

constexpr uint32_t kStreamWarps = 8;
constexpr uint32_t kStreamThreads = kStreamWarps * 32;
static_assert(kSumThreads == kStreamThreads + 32, "and the warp of the chain");
constexpr uint32_t kBlocks = kLeafBytes / xxh3::kBlock;
constexpr uint32_t kStages = 16;  // one barrier each, and a block has no more
constexpr uint32_t kStageBlocks = kBlocks / kStages;

struct Leaf {
  uint64_t to, from;
  uint32_t bytes;
};

// Calls f with the stage's number as a compile-time constant, as the barriers need it.
template <class F>
VELOCPY_DEVICE void at_stage(uint32_t stage, F f) {
  switch (stage) {
    case 0:
      return f(std::integral_constant<int, 0>());
    case 1:
      return f(std::integral_constant<int, 1>());
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    case 4:
      return f(std::integral_constant<int, 4>());
    case 5:
      return f(std::integral_constant<int, 5>());
    case 6:
      return f(std::integral_constant<int, 6>());
    case 7:
      return f(std::integral_constant<int, 7>());
    case 8:
      return f(std::integral_constant<int, 8>());
    case 9:
      return f(std::integral_constant<int, 9>());
    case 10:
      return f(std::integral_constant<int, 10>());
    case 11:
      return f(std::integral_constant<int, 11>());
    case 12:
      return f(std::integral_constant<int, 12>());
    case 13:
      return f(std::integral_constant<int, 13>());
    case 14:
      return f(std::integral_constant<int, 14>());
    default:
      return f(std::integral_constant<int, 15>());
  }
}
static_assert(kStages == 16, "one case each");

VELOCPY_DEVICE void stage_done(uint32_t stage) {
  at_stage(stage, [](auto number) { arrive<decltype(number)::value>(kSumThreads); });
}

VELOCPY_DEVICE void await_stage(uint32_t stage) {
  at_stage(stage, [](auto number) { await<decltype(number)::value>(kSumThreads); });
}

// Stores a vector at any address.
VELOCPY_DEVICE void store_anywhere(uint64_t to, const Vector& v) {
  if ((to & 15) == 0) {
    store(reinterpret_cast<Vector*>(to), v);
  } else if ((to & 3) == 0) {
#pragma unroll
    for (int i = 0; i < 4; i++) reinterpret_cast<uint32_t*>(to)[i] = v.word[i];
  } else {
#pragma unroll
    for (int i = 0; i < 16; i++) reinterpret_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(v.word[i / 4] >> 8 * (i % 4));
  }
}

VELOCPY_DEVICE uint64_t low_half(const Vector& v) { return v.word[0] | static_cast<uint64_t>(v.word[1]) << 32; }
VELOCPY_DEVICE uint64_t high_half(const Vector& v) { return v.word[2] | static_cast<uint64_t>(v.word[3]) << 32; }

// Both sides of an exchange: each of two lanes keeps one of two values, plus the other lane's share of it.
VELOCPY_DEVICE uint64_t split(uint64_t mine_low, uint64_t mine_high, uint32_t lane, uint32_t bit) {
  bool high = lane & bit;
  return (high ? mine_high : mine_low) + from_lane(high ? mine_low : mine_high, bit);
}

// A thread's share of two blocks, from block b on: 16 bytes of every eighth stripe. Bytes after the full blocks count as zeros.
template <bool Aligned>
VELOCPY_DEVICE void fetch(Vector (&share)[4], const Vector* source, uint32_t shift, uint32_t b, uint32_t full) {
#pragma unroll
  for (uint32_t i = 0; i < 4; i++) {
    const Vector* p = source + b * 64 + i * 32;
    share[i] = Vector{};
    if (b + i / 2 < full) share[i] = Aligned || shift == 0 ? load(p) : load_shifted(p, shift);
  }
}

// A thread holds words 2 * (lane % 4) and the next of a stripe. Four exchanges sum two blocks over the stripes; a lane then holds one
// word of one block. Meanwhile, the next two blocks are loaded if source and target are aligned. Shifted loads need the registers for
// themselves.
template <bool Copy, bool Aligned>
VELOCPY_DEVICE void stream(const Leaf& leaf, uint64_t (*sums)[xxh3::kLanes]) {
  uint32_t lane = thread_index() % 32, warp = thread_index() / 32;
  uint32_t full = leaf.bytes / xxh3::kBlock;
  uint32_t shift = Aligned ? 0 : static_cast<uint32_t>(leaf.from) & 15;
  auto* source = reinterpret_cast<const Vector*>(leaf.from - shift) + lane;
  uint32_t word = lane / 4 + 2 * (lane % 4);  // index in the secret, for the first half of a block
  uint64_t keys[2][2] = {{xxh3::kSecret[word], xxh3::kSecret[word + 1]}, {xxh3::kSecret[word + 8], xxh3::kSecret[word + 9]}};

  Vector next[4];
  if (Aligned) fetch<Aligned>(next, source, shift, 2 * warp, full);
  uint32_t stages = (full + kStageBlocks - 1) / kStageBlocks;
  for (uint32_t stage = 0; stage < stages; stage++) {
#pragma unroll 1
    for (uint32_t b = stage * kStageBlocks + 2 * warp; b < (stage + 1) * kStageBlocks && b < full; b += 2 * kStreamWarps) {
      Vector held[4];
      if (Aligned) {
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) held[i] = next[i];
        fetch<Aligned>(next, source, shift, b + 2 * kStreamWarps, full);
      } else {
        fetch<Aligned>(held, source, shift, b, full);
      }
      uint64_t even[2] = {}, odd[2] = {};
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) {
        uint64_t to = leaf.to + (b * 64 + i * 32 + lane) * 16;
        if (Copy && b + i / 2 < full) Aligned ? store(reinterpret_cast<Vector*>(to), held[i]) : store_anywhere(to, held[i]);
        xxh3::add_pair(even[i / 2], odd[i / 2], low_half(held[i]), high_half(held[i]), keys[i % 2][0], keys[i % 2][1]);
      }
      uint64_t of_even = split(even[0], even[1], lane, 16), of_odd = split(odd[0], odd[1], lane, 16);
      uint64_t sum = split(of_even, of_odd, lane, 8);
      sum += from_lane(sum, 4);
      if ((lane & 4) == 0 && b + lane / 16 < full) sums[b + lane / 16][2 * (lane % 4) + (lane / 8 & 1)] = sum;
    }
    sync_warp();
    stage_done(stage);
  }
  if (Copy) {
    for (uint32_t i = full * xxh3::kBlock + thread_index(); i < leaf.bytes; i += kStreamThreads)
      reinterpret_cast<uint8_t*>(leaf.to)[i] = reinterpret_cast<const uint8_t*>(leaf.from)[i];
  }
}

// The sum of what the lanes of the state contribute to the hash.
VELOCPY_DEVICE uint64_t merge_lanes(uint64_t state, uint32_t lane) {
  uint64_t other = from_lane(state, 1);
  uint64_t merged = lane % 2 == 0 ? xxh3::merge_pair(state, other, lane / 2) : 0;
  merged += from_lane(merged, 2);
  return merged + from_lane(merged, 4);
}

// All 32 lanes work: four groups each run the chain of the eight lanes of the state redundantly, and share the end of the leaf.
VELOCPY_DEVICE void chain(const Leaf& leaf, const uint64_t (*sums)[xxh3::kLanes], uint64_t* result) {
  uint32_t thread = thread_index() % 32, lane = thread % xxh3::kLanes;
  auto* bytes = reinterpret_cast<const uint8_t*>(leaf.from);
  if (leaf.bytes <= xxh3::kShort) {
    if (thread == 0) *result = xxh3::hash_short(bytes, leaf.bytes);
    return;
  }
  uint64_t tail = xxh3::tail_lane(bytes, leaf.bytes, lane, thread / xxh3::kLanes, 4);
  tail += from_lane(tail, 8);
  tail += from_lane(tail, 16);

  uint64_t state = xxh3::kStart[lane];
  uint32_t full = leaf.bytes / xxh3::kBlock, scrambled = xxh3::scrambled_blocks(leaf.bytes);
  uint32_t stages = (full + kStageBlocks - 1) / kStageBlocks;
  for (uint32_t stage = 0; stage < stages; stage++) {
    await_stage(stage);
    uint32_t end = (stage + 1) * kStageBlocks < scrambled ? (stage + 1) * kStageBlocks : scrambled;
#pragma unroll 8
    for (uint32_t b = stage * kStageBlocks; b < end; b++) state = xxh3::scramble(state + sums[b][lane], lane);
  }
  state += tail;

  uint64_t merged = merge_lanes(state, lane);
  if (thread == 0) *result = xxh3::finish(merged, leaf.bytes);
}

template <bool Copy, int N>
VELOCPY_DEVICE void leaf_sums(const Pieces<N>& p) {
  VELOCPY_SHARED uint64_t sums[kBlocks][xxh3::kLanes];
  uint32_t piece = find(p.first, p.count, block_index()), number = block_index() - p.first[piece];
  uint64_t begin = static_cast<uint64_t>(number) * kLeafBytes, left = p.bytes[piece] - begin;
  Leaf leaf = {Copy ? p.to[piece] + begin : 0, p.from[piece] + begin, left < kLeafBytes ? static_cast<uint32_t>(left) : kLeafBytes};
  if (thread_index() >= kStreamThreads)
    chain(leaf, sums, reinterpret_cast<uint64_t*>(p.sums) + p.sum[piece] + number);
  else if (((leaf.from | leaf.to) & 15) == 0)
    stream<Copy, true>(leaf, sums);
  else
    stream<Copy, false>(leaf, sums);
}

}  // namespace velocpy
