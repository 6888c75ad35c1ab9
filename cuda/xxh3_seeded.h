// XXH3-64 and XXH3-128 with a seed, in the parts of xxh3.h. The secret of a seed is the default one with the seed added to its even words
// and subtracted from its odd words. Lanes read different words of it at once.
#pragma once

#include "xxh3.h"

namespace velocpy {
namespace xxh3 {

struct Hash128 {
  uint64_t low, high;
};

// Word i of the secret of a seed.
VELOCPY_HASH uint64_t seeded_word(uint32_t i, uint64_t seed) { return kLaneSecret[i] + (i % 2 == 0 ? seed : -seed); }

// The word of it that begins at byte `at`, which is no multiple of 8.
VELOCPY_HASH uint64_t seeded_bytes(uint32_t at, uint64_t seed) {
  uint32_t bits = at % 8 * 8;
  return seeded_word(at / 8, seed) >> bits | seeded_word(at / 8 + 1, seed) << (64 - bits);
}

// Where the keys of the last stripe begin, and those that merge the state into the low and the high half of a result.
constexpr uint32_t kLastStripeKey = sizeof kSecret - kStripe - 7, kLowMergeKey = 11, kHighMergeKey = 117;

VELOCPY_HASH uint64_t seeded_scramble(uint64_t state, uint32_t lane, uint64_t seed) {
  state ^= state >> 47;
  state ^= seeded_word(sizeof kSecret / 8 - kLanes + lane, seed);
  return state * kPrime32x1;
}

// One worker's share of the additions to a lane by the stripes of a block of the hash.
VELOCPY_HASH uint64_t seeded_stripes(const uint8_t* block, uint32_t stripes, uint32_t lane, uint32_t worker, uint32_t workers,
                                     uint64_t seed) {
  uint64_t sum = 0;
#pragma unroll 1
  for (uint32_t s = worker; s < stripes; s += workers) sum += stripe_lane(block + s * kStripe, lane, seeded_word(s + lane, seed));
  return sum;
}

// The same for all after the last scrambling.
VELOCPY_HASH uint64_t seeded_tail(const uint8_t* p, uint32_t bytes, uint32_t lane, uint32_t worker, uint32_t workers, uint64_t seed) {
  uint32_t begin = scrambled_blocks(bytes) * kBlock;
  uint64_t sum = seeded_stripes(p + begin, (bytes - 1 - begin) / kStripe, lane, worker, workers, seed);
  if (worker == workers - 1) sum += stripe_lane(p + bytes - kStripe, lane, seeded_bytes(kLastStripeKey + 8 * lane, seed));
  return sum;
}

// What lanes 2 * pair and 2 * pair + 1 contribute to the half of the result whose keys begin at `key`.
VELOCPY_HASH uint64_t seeded_merge(uint64_t even, uint64_t odd, uint32_t pair, uint32_t key, uint64_t seed) {
  return fold(even ^ seeded_bytes(key + 16 * pair, seed), odd ^ seeded_bytes(key + 16 * pair + 8, seed));
}

VELOCPY_HASH uint64_t finish_low(uint64_t merged, uint32_t bytes) { return avalanche(merged + bytes * kPrime64x1); }
VELOCPY_HASH uint64_t finish_high(uint64_t merged, uint32_t bytes) { return avalanche(merged + ~(bytes * kPrime64x2)); }

VELOCPY_HASH uint64_t swap_bytes(uint64_t x) {
  uint64_t turned = 0;
#pragma unroll 1
  for (int i = 0; i < 8; i++) turned |= (x >> 8 * i & 255) << (56 - 8 * i);
  return turned;
}

// The seed of inputs of 4 to 8 bytes.
VELOCPY_HASH uint64_t spread_seed(uint64_t seed) { return seed ^ swap_bytes(seed & 0xffffffff); }

// The end of a 128-bit hash of 17 to 240 bytes.
VELOCPY_HASH Hash128 finish_short(uint64_t low, uint64_t high, uint32_t n, uint64_t seed) {
  return {avalanche(low + high), -avalanche(low * kPrime64x1 + high * kPrime64x4 + (n - seed) * kPrime64x2)};
}

// Adds 32 bytes: 16 at `a` and 16 at `b`, with the keys from byte `key` of the default secret on.
VELOCPY_HASH void mix32(Hash128& h, const uint8_t* a, const uint8_t* b, uint32_t key, uint64_t seed) {
  uint64_t a0 = read64(a), a1 = read64(a + 8), b0 = read64(b), b1 = read64(b + 8);
  h.low = (h.low + fold(a0 ^ (secret(key) + seed), a1 ^ (secret(key + 8) - seed))) ^ (b0 + b1);
  h.high = (h.high + fold(b0 ^ (secret(key + 16) + seed), b1 ^ (secret(key + 24) - seed))) ^ (a0 + a1);
}

VELOCPY_HASH Hash128 hash128_9_to_16(const uint8_t* p, uint32_t n, uint64_t seed) {
  uint64_t first = read64(p), last = read64(p + n - 8);
  uint64_t keyed = first ^ last ^ ((secret(32) ^ secret(40)) - seed);
  uint64_t low = keyed * kPrime64x1, high = high_product(keyed, kPrime64x1);
  low += static_cast<uint64_t>(n - 1) << 54;
  last ^= (secret(48) ^ secret(56)) + seed;
  high += last + static_cast<uint64_t>(static_cast<uint32_t>(last)) * (kPrime32x2 - 1);
  low ^= swap_bytes(high);
  return {avalanche(low * kPrime64x2), avalanche(high_product(low, kPrime64x2) + high * kPrime64x2)};
}

VELOCPY_HASH Hash128 hash128_4_to_8(const uint8_t* p, uint32_t n, uint64_t seed) {
  uint64_t keyed = (read32(p) | static_cast<uint64_t>(read32(p + n - 4)) << 32) ^ ((secret(16) ^ secret(24)) + spread_seed(seed));
  uint64_t by = kPrime64x1 + (n << 2), low = keyed * by, high = high_product(keyed, by);
  high += low << 1;
  low ^= high >> 3;
  low ^= low >> 35;
  low *= kShuffle;
  return {low ^ low >> 28, avalanche(high)};
}

VELOCPY_HASH Hash128 hash128_0_to_3(const uint8_t* p, uint32_t n, uint64_t seed) {
  if (n == 0) return {avalanche64(secret(64) ^ secret(72) ^ seed), avalanche64(secret(80) ^ secret(88) ^ seed)};
  uint32_t text = static_cast<uint32_t>(p[0]) << 16 | static_cast<uint32_t>(p[n >> 1]) << 24 | p[n - 1] | n << 8;
  uint32_t turned = text >> 24 | (text >> 8 & 0xff00) | (text << 8 & 0xff0000) | text << 24;
  turned = turned << 13 | turned >> 19;
  uint64_t low = static_cast<uint32_t>(kSecret[0] ^ kSecret[0] >> 32), high = static_cast<uint32_t>(kSecret[1] ^ kSecret[1] >> 32);
  return {avalanche64(text ^ (low + seed)), avalanche64(turned ^ (high - seed))};
}

VELOCPY_HASH Hash128 hash128_17_to_128(const uint8_t* p, uint32_t n, uint64_t seed) {
  Hash128 h = {n * kPrime64x1, 0};
#pragma unroll 1
  for (uint32_t i = (n - 1) / 32 + 1; i-- > 0;) mix32(h, p + 16 * i, p + n - 16 * (i + 1), 32 * i, seed);
  return finish_short(h.low, h.high, n, seed);
}

VELOCPY_HASH Hash128 hash128_129_to_240(const uint8_t* p, uint32_t n, uint64_t seed) {
  Hash128 h = {n * kPrime64x1, 0};
#pragma unroll 1
  for (uint32_t at = 0; at < n / 32 * 32; at += 32) {
    if (at == 128) h = {avalanche(h.low), avalanche(h.high)};
    mix32(h, p + at, p + at + 16, at < 128 ? at : at - 125, seed);
  }
  if (n < 160) h = {avalanche(h.low), avalanche(h.high)};
  mix32(h, p + n - 16, p + n - 32, 103, -seed);
  return finish_short(h.low, h.high, n, seed);
}

// Hashes an input of at most kShort bytes.
VELOCPY_HASH Hash128 hash128_short(const uint8_t* p, uint32_t n, uint64_t seed) {
  if (n > 128) return hash128_129_to_240(p, n, seed);
  if (n > 16) return hash128_17_to_128(p, n, seed);
  if (n > 8) return hash128_9_to_16(p, n, seed);
  return n > 3 ? hash128_4_to_8(p, n, seed) : hash128_0_to_3(p, n, seed);
}

VELOCPY_HASH uint64_t mix16_seeded(const uint8_t* p, uint32_t key, uint64_t seed) {
  return fold(read64(p) ^ (secret(key) + seed), read64(p + 8) ^ (secret(key + 8) - seed));
}

VELOCPY_HASH uint64_t seeded_0_to_16(const uint8_t* p, uint32_t n, uint64_t seed) {
  if (n > 8) {
    uint64_t low = read64(p) ^ ((secret(24) ^ secret(32)) + seed), high = read64(p + n - 8) ^ ((secret(40) ^ secret(48)) - seed);
    return avalanche(n + swap_bytes(low) + high + fold(low, high));
  }
  if (n >= 4) {
    uint64_t h = (static_cast<uint64_t>(read32(p)) << 32 | read32(p + n - 4)) ^ ((secret(8) ^ secret(16)) - spread_seed(seed));
    h ^= (h << 49 | h >> 15) ^ (h << 24 | h >> 40);
    h *= kShuffle;
    h ^= (h >> 35) + n;
    h *= kShuffle;
    return h ^ h >> 28;
  }
  if (n == 0) return avalanche64(secret(56) ^ secret(64) ^ seed);
  uint32_t text = static_cast<uint32_t>(p[0]) << 16 | static_cast<uint32_t>(p[n >> 1]) << 24 | p[n - 1] | n << 8;
  return avalanche64(text ^ (static_cast<uint32_t>(kSecret[0] ^ kSecret[0] >> 32) + seed));
}

VELOCPY_HASH uint64_t seeded_17_to_240(const uint8_t* p, uint32_t n, uint64_t seed) {
  constexpr uint32_t kLastKey = 136 - 17;
  uint64_t h = n * kPrime64x1;
  if (n <= 128) {
#pragma unroll 1
    for (uint32_t i = 0; i <= (n - 1) / 32; i++)
      h += mix16_seeded(p + 16 * i, 32 * i, seed) + mix16_seeded(p + n - 16 * (i + 1), 32 * i + 16, seed);
    return avalanche(h);
  }
#pragma unroll 1
  for (uint32_t i = 0; i < 8; i++) h += mix16_seeded(p + 16 * i, 16 * i, seed);
  h = avalanche(h);
#pragma unroll 1
  for (uint32_t i = 8; i < n / 16; i++) h += mix16_seeded(p + 16 * i, 16 * i - 125, seed);
  return avalanche(h + mix16_seeded(p + n - 16, kLastKey, seed));
}

// The 64-bit hash of at most kShort bytes.
VELOCPY_HASH uint64_t seeded_short(const uint8_t* p, uint32_t n, uint64_t seed) {
  return n <= 16 ? seeded_0_to_16(p, n, seed) : seeded_17_to_240(p, n, seed);
}

}  // namespace xxh3
}  // namespace velocpy
