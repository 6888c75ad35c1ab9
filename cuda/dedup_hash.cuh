// Hashes of de-duplication, by threads that hold 64 bytes each: see gocore/reduction/digest.
//
// A tile of 16 KiB is in the registers of 256 threads. Thread t holds 16 bytes of each of the four stripes of unit t / 4, which are 256
// bytes; its number in these four threads, the pair, says which 16 bytes of a stripe. So four neighbours load whole stripes, and the pair's
// two lanes of the state of a long hash are sums within a thread, then over units.
#pragma once

#include "dedup_parameters.h"
#include "machine.cuh"
#include "sums.cuh"
#include "xxh3_seeded.h"

namespace velocpy {
namespace dedup {

VELOCPY_DEVICE uint32_t lane_index() { return thread_index() % 32; }
VELOCPY_DEVICE uint32_t warp_index() { return thread_index() / 32; }

constexpr uint32_t kUnit = 256, kUnitStripes = kUnit / xxh3::kStripe;

// The keys of a thread for the stripes of its unit. The last stripe has two of its own.
struct Keys {
  uint64_t word[kUnitStripes], last[2];
};

// Of a unit that begins with a stripe of that number in its block of the hash. If the unit ends the hash, its last stripe has other keys.
VELOCPY_DEVICE Keys keys_of(uint32_t stripe, bool ends, uint32_t pair, uint64_t seed) {
  Keys k;
  uint32_t at = stripe + 2 * pair;
#pragma unroll
  for (uint32_t i = 0; i < kUnitStripes; i++) k.word[i] = xxh3::seeded_word(at + i, seed);
  k.last[0] = k.word[kUnitStripes - 1];
  k.last[1] = xxh3::seeded_word(at + kUnitStripes, seed);
  if (ends) {
    k.last[0] = xxh3::seeded_bytes(xxh3::kLastStripeKey + 16 * pair, seed);
    k.last[1] = xxh3::seeded_bytes(xxh3::kLastStripeKey + 16 * pair + 8, seed);
  }
  return k;
}

// What the thread's bytes add to the two lanes of its pair.
VELOCPY_DEVICE void add_unit(const Vector (&held)[kUnitStripes], const Keys& k, uint64_t& even, uint64_t& odd) {
#pragma unroll
  for (uint32_t i = 0; i + 1 < kUnitStripes; i++)
    xxh3::add_pair(even, odd, low_half(held[i]), high_half(held[i]), k.word[i], k.word[i + 1]);
  xxh3::add_pair(even, odd, low_half(held[3]), high_half(held[3]), k.last[0], k.last[1]);
}

// The sums of blocks of the hash: four units each.
using TileSums = uint64_t[kTileBytes / xxh3::kBlock][xxh3::kLanes];

VELOCPY_DEVICE void sum_blocks(const Vector (&held)[kUnitStripes], const Keys& k, TileSums& sums) {
  uint32_t lane = lane_index();
  uint64_t even = 0, odd = 0;
  add_unit(held, k, even, odd);
  uint64_t sum = split(even, odd, lane, 4);
  sum += from_lane(sum, 8);
  if ((lane & 8) == 0) sums[thread_index() / 16][2 * (lane % 4) + (lane / 4 & 1)] = sum;
}

// Both halves of a long hash, from its state in eight lanes: the low half in even lanes, the high one in odd lanes.
VELOCPY_DEVICE uint64_t merge_halves(uint64_t state, uint32_t bytes, uint64_t seed) {
  uint32_t lane = lane_index() % xxh3::kLanes;
  bool high = lane % 2 != 0;
  uint64_t other = from_lane(state, 1);
  uint64_t merged =
      xxh3::seeded_merge(high ? other : state, high ? state : other, lane / 2, high ? xxh3::kHighMergeKey : xxh3::kLowMergeKey, seed);
  merged += from_lane(merged, 2);
  merged += from_lane(merged, 4);
  return high ? xxh3::finish_high(merged, bytes) : xxh3::finish_low(merged, bytes);
}

// The digest of a chunk whose blocks of the hash were summed, computed by eight lanes.
template <uint32_t Bytes>
VELOCPY_DEVICE xxh3::Hash128 digest_of_sums(const uint64_t (*sums)[xxh3::kLanes], uint64_t seed) {
  uint32_t lane = lane_index() % xxh3::kLanes;
  uint64_t state = xxh3::kStart[lane];
  constexpr uint32_t kScrambled = Bytes / xxh3::kBlock - 1;
#pragma unroll
  for (uint32_t b = 0; b + 1 < Bytes / xxh3::kBlock; b++) state = xxh3::seeded_scramble(state + sums[b][lane], lane, seed);
  uint64_t half = merge_halves(state + sums[kScrambled][lane], Bytes, seed), other = from_lane(half, 1);
  return lane % 2 == 0 ? xxh3::Hash128{half, other} : xxh3::Hash128{other, half};
}

// The digest of any bytes in memory, computed by a warp.
VELOCPY_DEVICE xxh3::Hash128 digest_of_bytes(const uint8_t* p, uint32_t bytes, uint64_t seed) {
  if (bytes <= xxh3::kShort) return xxh3::hash128_short(p, bytes, seed);
  uint32_t lane = lane_index() % xxh3::kLanes, worker = lane_index() / xxh3::kLanes;
  uint64_t state = xxh3::kStart[lane];
#pragma unroll 1
  for (uint32_t b = 0; b <= xxh3::scrambled_blocks(bytes); b++) {
    bool end = b == xxh3::scrambled_blocks(bytes);
    uint64_t sum =
        end ? xxh3::seeded_tail(p, bytes, lane, worker, 4, seed) : xxh3::seeded_stripes(p + b * xxh3::kBlock, 16, lane, worker, 4, seed);
    sum += from_lane(sum, 8);
    state += sum + from_lane(sum, 16);
    if (!end) state = xxh3::seeded_scramble(state, lane, seed);
  }
  uint64_t half = merge_halves(state, bytes, seed), other = from_lane(half, 1);
  return lane % 2 == 0 ? xxh3::Hash128{half, other} : xxh3::Hash128{other, half};
}

// What the stripes after the last scrambling of a short tile add to the lane, computed by a warp.
VELOCPY_DEVICE uint64_t end_of_tile(const uint8_t* p, uint32_t bytes, uint64_t seed) {
  uint64_t end = xxh3::seeded_tail(p, bytes, lane_index() % xxh3::kLanes, lane_index() / xxh3::kLanes, 4, seed);
  end += from_lane(end, 8);
  return end + from_lane(end, 16);
}

// The hash of a tile whose blocks were summed, computed by a warp. The end of a short tile is read from memory.
VELOCPY_DEVICE uint64_t checksum_of_sums(const TileSums& sums, const uint8_t* p, uint32_t bytes, uint64_t seed) {
  uint32_t lane = lane_index() % xxh3::kLanes;
  if (bytes <= xxh3::kShort) return xxh3::seeded_short(p, bytes, seed);
  uint64_t state = xxh3::kStart[lane], key = xxh3::seeded_word(sizeof xxh3::kSecret / 8 - xxh3::kLanes + lane, seed);
  uint32_t scrambled = xxh3::scrambled_blocks(bytes);
#pragma unroll 5
  for (uint32_t b = 0; b < scrambled; b++) {
    state += sums[b][lane];
    state = (state ^ state >> 47 ^ key) * xxh3::kPrime32x1;
  }
  state += bytes == kTileBytes ? sums[kTileBytes / xxh3::kBlock - 1][lane] : end_of_tile(p, bytes, seed);
  uint64_t other = from_lane(state, 1);
  uint64_t merged = lane % 2 == 0 ? xxh3::seeded_merge(state, other, lane / 2, xxh3::kLowMergeKey, seed) : 0;
  merged += from_lane(merged, 2);
  merged += from_lane(merged, 4);
  return xxh3::finish_low(merged, bytes);
}

// The digest of a chunk of 256 or 512 bytes, which is in the lanes of one or two units. All of them get it.
template <uint32_t Bytes>
VELOCPY_DEVICE xxh3::Hash128 digest_of_units(const Vector (&held)[kUnitStripes], uint64_t seed) {
  uint32_t unit = thread_index() / 4 % (Bytes / kUnit), pair = thread_index() % 4;
  Keys k = keys_of(kUnitStripes * unit, unit == Bytes / kUnit - 1, pair, seed);
  uint64_t even = 0, odd = 0;
  add_unit(held, k, even, odd);
  if (Bytes == 2 * kUnit) {
    even += from_lane(even, 4);
    odd += from_lane(odd, 4);
  }
  even += xxh3::kStart[2 * pair];
  odd += xxh3::kStart[2 * pair + 1];
  uint64_t low = xxh3::seeded_merge(even, odd, pair, xxh3::kLowMergeKey, seed),
           high = xxh3::seeded_merge(even, odd, pair, xxh3::kHighMergeKey, seed);
#pragma unroll
  for (uint32_t flip = 1; flip < 4; flip *= 2) {
    low += from_lane(low, flip);
    high += from_lane(high, flip);
  }
  return {xxh3::finish_low(low, Bytes), xxh3::finish_high(high, Bytes)};
}

// One of the two halves of a round of a short hash: 16 bytes with their keys, and the sum of the 16 bytes of the other half.
VELOCPY_DEVICE void mix_half(uint64_t& half, const Vector& own, uint64_t key, uint64_t second_key, uint64_t other) {
  half = (half + xxh3::fold(low_half(own) ^ key, high_half(own) ^ second_key)) ^ other;
}
VELOCPY_DEVICE uint64_t half_sum(const Vector& v) { return low_half(v) + high_half(v); }

// The digest of a chunk of 32 or 64 bytes in one thread. The keys are the first words of the secret of the seed.
template <uint32_t Bytes>
VELOCPY_DEVICE xxh3::Hash128 digest_of_vectors(const Vector* held, const uint64_t* keys, uint64_t seed) {
  constexpr uint32_t kRounds = Bytes / 32;
  uint64_t low = Bytes * xxh3::kPrime64x1, high = 0;
#pragma unroll
  for (uint32_t i = kRounds; i-- > 0;) {
    const Vector &front = held[i], &back = held[2 * kRounds - 1 - i];
    mix_half(low, front, keys[4 * i], keys[4 * i + 1], half_sum(back));
    mix_half(high, back, keys[4 * i + 2], keys[4 * i + 3], half_sum(front));
  }
  return xxh3::finish_short(low, high, Bytes, seed);
}

// The digest of a chunk of 128 bytes in two threads, which both get it. The even thread holds the first four vectors, the odd one the last
// four in reverse: it computes the high half.
VELOCPY_DEVICE xxh3::Hash128 digest_of_two(const Vector (&held)[4], const uint64_t* keys, uint64_t seed) {
  constexpr uint32_t kBytes = 128;
  uint32_t back = thread_index() % 2;
  uint64_t half = back ? 0 : kBytes * xxh3::kPrime64x1;
#pragma unroll
  for (uint32_t i = 4; i-- > 0;)
    mix_half(half, held[i], keys[4 * i + 2 * back], keys[4 * i + 2 * back + 1], from_lane(half_sum(held[i]), 1));
  uint64_t other = from_lane(half, 1);
  return xxh3::finish_short(back ? other : half, back ? half : other, kBytes, seed);
}

}  // namespace dedup
}  // namespace velocpy
