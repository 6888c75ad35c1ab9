// A chunk between global memory, registers and its hash.
#pragma once

#include "codec_words.cuh"
#include "machine.cuh"
#include "parameters.h"
#include "sums.cuh"
#include "xxh3.h"

namespace velocpy {

constexpr uint32_t kHashBlocks = kChunkBytes / xxh3::kBlock;
using Sums = uint64_t[kHashBlocks][xxh3::kLanes];

// The modes, as gocore/reduction/codec numbers them.
constexpr uint32_t kRaw = 0, kConst = 1, kDiff = 2, kExp = 3, kXrz = 4, kStep = 5, kModes = 6;
constexpr uint32_t kReferenceHead = 8;  // the bytes before the bodies of kXrz and kStep

VELOCPY_DEVICE uint32_t round_up(uint32_t n, uint32_t to) { return (n + to - 1) & ~(to - 1); }
VELOCPY_DEVICE uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
VELOCPY_DEVICE uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

// Where the parts of a container for so many chunks begin.
struct Tables {
  uint64_t hashes, lengths, modes, payloads;
};
VELOCPY_DEVICE Tables tables(uint64_t container, uint64_t chunks) {
  constexpr uint64_t kHeader = 64;
  uint64_t hashes = container + kHeader;
  return {hashes, hashes + 8 * chunks, hashes + 10 * chunks, container + ((kHeader + 11 * chunks + 15) & ~uint64_t{15})};
}

// What a block of threads works on: a chunk of the region, of which only the last is shorter than kChunkBytes.
struct Chunk {
  uint64_t plain, reference;  // addresses
  uint32_t bytes, words;      // whole words; fewer bytes than a word may follow
};
VELOCPY_DEVICE Chunk chunk_of(uint64_t plain, uint64_t reference, uint64_t region, uint32_t number, uint32_t size) {
  uint64_t begin = static_cast<uint64_t>(number) * kChunkBytes, left = region - begin;
  uint32_t bytes = left < kChunkBytes ? static_cast<uint32_t>(left) : kChunkBytes;
  return {plain + begin, reference == 0 ? 0 : reference + begin, bytes, bytes / size};
}

// How many words of a thread's vector are there.
template <class K>
VELOCPY_DEVICE uint32_t valid_words(uint32_t words, uint32_t pass) {
  uint32_t before = vector_index(pass) * K::kWords;
  return before >= words ? 0 : smaller(words - before, K::kWords);
}

// Reads bytes of any address into vectors of shared memory; zeros follow. All kernels share this code, which is long and rarely runs.
VELOCPY_OUTLINED void stage_chunk(Vector* room, uint64_t from, uint32_t bytes) {
  uint32_t shift = static_cast<uint32_t>(from) & 15;
#pragma unroll 1
  for (uint32_t v = thread_index(); v < kChunkBytes / 16; v += kCodecThreads) {
    if (16 * v + 16 > bytes) {
      room[v] = {};
#pragma unroll 1
      for (uint32_t i = 16 * v; i < bytes; i++) reinterpret_cast<uint8_t*>(room)[i] = reinterpret_cast<const uint8_t*>(from)[i];
    } else {
      auto* p = reinterpret_cast<const Vector*>(from - shift) + v;
      room[v] = shift == 0 ? load(p) : load_shifted(p, shift);
    }
  }
}

// Writes bytes of shared memory to any address.
VELOCPY_OUTLINED void unstage_chunk(uint64_t to, const Vector* room, uint32_t bytes) {
  auto* from = reinterpret_cast<const uint8_t*>(room);
  uint32_t n = (to & 3) == 0 ? bytes & ~3u : 0;
#pragma unroll 1
  for (uint32_t i = 4 * thread_index(); i < n; i += 4 * kCodecThreads)
    *reinterpret_cast<uint32_t*>(to + i) = *reinterpret_cast<const uint32_t*>(from + i);
#pragma unroll 1
  for (uint32_t i = n + thread_index(); i < bytes; i += kCodecThreads) reinterpret_cast<uint8_t*>(to)[i] = from[i];
}

// Reads the vectors; zeros follow the last word. Chunks that are short or not aligned pass through `room`, of shared memory, with two
// barriers.
template <class K>
VELOCPY_DEVICE void load_share(Share& x, uint64_t from, uint32_t words, Vector* room) {
  if (words == K::kChunkWords && (from & 15) == 0) {
#pragma unroll
    for (uint32_t i = 0; i < kPasses; i++) x.pass[i] = load(reinterpret_cast<const Vector*>(from) + vector_index(i));
    return;
  }
  stage_chunk(room, from, words * K::kSize);
  sync_block();
#pragma unroll
  for (uint32_t i = 0; i < kPasses; i++) x.pass[i] = room[vector_index(i)];
  sync_block();
}

// Writes the words of a chunk to any address. They pass through `room` as in load_share.
template <class K>
VELOCPY_DEVICE void store_share(uint64_t to, const Share& x, uint32_t words, Vector* room) {
  if (words == K::kChunkWords && (to & 15) == 0) {
#pragma unroll
    for (uint32_t i = 0; i < kPasses; i++) store(reinterpret_cast<Vector*>(to) + vector_index(i), x.pass[i]);
    return;
  }
  sync_block();
#pragma unroll
  for (uint32_t i = 0; i < kPasses; i++) room[vector_index(i)] = x.pass[i];
  sync_block();
  unstage_chunk(to, room, words * K::kSize);
}

// A word at any address.
template <uint32_t S>
VELOCPY_DEVICE uint64_t word_at(uint64_t from) {
  uint64_t word = 0;
#pragma unroll 1
  for (uint32_t i = S; i-- > 0;) word = word << 8 | reinterpret_cast<const uint8_t*>(from)[i];
  return word;
}

// Sums the blocks of the hash, of which each warp has two in its registers: see stream in sums.cuh. The last block of a whole chunk is
// summed as the end of a hash is, with the keys of that.
VELOCPY_DEVICE void sum_chunk(const Share& x, bool whole, Sums& sums) {
  uint32_t lane = lane_index(), word = lane / 4 + 2 * (lane % 4);
  const uint64_t* secret = xxh3::kLaneSecret;
  uint64_t keys[2][2] = {{secret[word], secret[word + 1]}, {secret[word + 8], secret[word + 9]}};
  uint64_t even[2] = {}, odd[2] = {};
#pragma unroll
  for (uint32_t i = 0; i < kPasses; i++) {
    if (i == kPasses - 1 && whole && warp_index() == kCodecWarps - 1 && lane >= 28) {
      // The words of the secret from byte 121 on.
      static_assert(sizeof xxh3::kSecret - xxh3::kStripe - 7 == 8 * 15 + 1, "seven bytes before where those of a scrambling begin");
      uint32_t last = 15 + 2 * (lane % 4);
      keys[1][0] = secret[last] >> 8 | secret[last + 1] << 56;
      keys[1][1] = secret[last + 1] >> 8 | secret[last + 2] << 56;
    }
    xxh3::add_pair(even[i / 2], odd[i / 2], low_half(x.pass[i]), high_half(x.pass[i]), keys[i % 2][0], keys[i % 2][1]);
  }
  uint64_t of_even = split(even[0], even[1], lane, 16), of_odd = split(odd[0], odd[1], lane, 16);
  uint64_t sum = split(of_even, of_odd, lane, 8);
  sum += from_lane(sum, 4);
  if ((lane & 4) == 0) sums[2 * warp_index() + lane / 16][2 * (lane % 4) + (lane / 8 & 1)] = sum;
}

// All kernels share the code for short chunks, which is long and rarely runs.
VELOCPY_OUTLINED uint64_t hash_short(const uint8_t* p, uint32_t n) { return xxh3::hash_short(p, n); }
VELOCPY_OUTLINED uint64_t hash_end(const uint8_t* p, uint32_t bytes) {
  return xxh3::tail_lane(p, bytes, lane_index() % xxh3::kLanes, lane_index() / xxh3::kLanes, 4);
}

// The hash of a chunk whose blocks were summed, computed by a warp. The end of a short chunk is read from memory.
VELOCPY_DEVICE uint64_t hash_chunk(const Sums& sums, uint64_t from, uint32_t bytes) {
  uint32_t lane = lane_index() % xxh3::kLanes;
  auto* p = reinterpret_cast<const uint8_t*>(from);
  if (bytes <= xxh3::kShort) return hash_short(p, bytes);
  uint64_t state = xxh3::kStart[lane], key = xxh3::kLaneSecret[sizeof xxh3::kSecret / 8 - xxh3::kLanes + lane];
  uint32_t scrambled = xxh3::scrambled_blocks(bytes);
#pragma unroll 5
  for (uint32_t b = 0; b < scrambled; b++) {
    state += sums[b][lane];
    state = (state ^ state >> 47 ^ key) * xxh3::kPrime32x1;
  }
  if (bytes == kChunkBytes) {
    state += sums[kHashBlocks - 1][lane];
  } else {
    uint64_t end = hash_end(p, bytes);
    end += from_lane(end, 8);
    state += end + from_lane(end, 16);
  }
  return xxh3::finish(merge_lanes(state, lane), bytes);
}

// The sum of the values of the lanes before this one, for values of which only some bits are used.
template <class T>
VELOCPY_DEVICE T sum_before(T value, T& all) {
  T sum = value;
#pragma unroll
  for (uint32_t step = 1; step < 32; step *= 2) {
    T other = at_lane(sum, lane_index() - step);
    if (lane_index() >= step) sum += other;
  }
  all = at_lane(sum, 31);
  return sum - value;
}

}  // namespace velocpy
