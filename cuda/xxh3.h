// XXH3-64 with seed 0 and the default secret, split into a part that many threads can compute in parallel, and a sequential chain. It
// compiles for a GPU and for a CPU, where the tests compare it with another implementation.
//
// An input of more than 240 bytes is a sequence of stripes of 64 bytes; 16 stripes are a block. The state is 8 words (lanes). The
// contributions of a block's stripes to a lane can be summed in any order (`add_pair`, `tail_lane`); between blocks the lane is
// scrambled (`scramble`), in order. The block with the last byte, and the last 64 bytes again, are only added.
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define VELOCPY_HASH __device__ __forceinline__
#define VELOCPY_TABLE __device__ __constant__ const
#define VELOCPY_LANE_TABLE __device__ const
#else
#include <string.h>
#define VELOCPY_HASH inline
#define VELOCPY_TABLE static const
#define VELOCPY_LANE_TABLE static const
#endif

namespace velocpy {
namespace xxh3 {

constexpr uint32_t kStripe = 64, kBlock = 1024, kLanes = 8;
constexpr uint32_t kShort = 240;  // the longest input without stripes

constexpr uint32_t kPrime32x1 = 0x9E3779B1, kPrime32x2 = 0x85EBCA77, kPrime32x3 = 0xC2B2AE3D;
constexpr uint64_t kPrime64x1 = 0x9E3779B185EBCA87, kPrime64x2 = 0xC2B2AE3D27D4EB4F, kPrime64x3 = 0x165667B19E3779F9;
constexpr uint64_t kPrime64x4 = 0x85EBCA77C2B2AE63, kPrime64x5 = 0x27D4EB2F165667C5;
constexpr uint64_t kAvalanche = 0x165667919E3779F9, kShuffle = 0x9FB21C651E98DF25;

// The secret's 192 bytes, as little-endian words.
#define VELOCPY_SECRET                                                                                                        \
  0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072, 0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82,     \
      0x8e2443f7744608b8, 0x4c263a81e69035e0, 0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938, \
      0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8, 0xc3ebd33483acc5ea, 0xeb6313faffa081c5, \
      0x49daf0b751dd0d17, 0x9e68d429265516d3, 0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af

VELOCPY_TABLE uint64_t kSecret[24] = {VELOCPY_SECRET};
// For lanes that read different words at once: constant memory would serve them one after the other.
VELOCPY_LANE_TABLE uint64_t kLaneSecret[24] = {VELOCPY_SECRET};

// The state before the first stripe.
VELOCPY_TABLE uint64_t kStart[kLanes] = {kPrime32x3, kPrime64x1, kPrime64x2, kPrime64x3, kPrime64x4, kPrime32x2, kPrime64x5, kPrime32x1};

// The word of the secret that begins at byte `at`.
VELOCPY_HASH uint64_t secret(uint32_t at) {
  uint32_t word = at / 8, bits = at % 8 * 8;
  return bits == 0 ? kSecret[word] : kSecret[word] >> bits | kSecret[word + 1] << (64 - bits);
}

// Words of the input, at any alignment.
VELOCPY_HASH uint64_t read64(const uint8_t* p) {
#ifdef __CUDACC__
  if ((reinterpret_cast<uint64_t>(p) & 7) == 0) return *reinterpret_cast<const uint64_t*>(p);
  uint64_t word = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) word |= static_cast<uint64_t>(p[i]) << 8 * i;
  return word;
#else
  uint64_t word;
  memcpy(&word, p, sizeof word);
  return word;
#endif
}

VELOCPY_HASH uint32_t read32(const uint8_t* p) {
  return p[0] | static_cast<uint32_t>(p[1]) << 8 | static_cast<uint32_t>(p[2]) << 16 | static_cast<uint32_t>(p[3]) << 24;
}

VELOCPY_HASH uint64_t high_product(uint64_t a, uint64_t b) {
#ifdef __CUDACC__
  return __umul64hi(a, b);
#else
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}

VELOCPY_HASH uint64_t fold(uint64_t a, uint64_t b) { return a * b ^ high_product(a, b); }

VELOCPY_HASH uint64_t halves(uint64_t keyed) { return static_cast<uint64_t>(static_cast<uint32_t>(keyed)) * (keyed >> 32); }

VELOCPY_HASH uint64_t avalanche(uint64_t h) {
  h = (h ^ h >> 37) * kAvalanche;
  return h ^ h >> 32;
}

VELOCPY_HASH uint64_t avalanche64(uint64_t h) {
  h = (h ^ h >> 33) * kPrime64x2;
  h = (h ^ h >> 29) * kPrime64x3;
  return h ^ h >> 32;
}

// Adds two neighbouring words of a stripe, the first of an even lane. Each word is added to the other's lane.
VELOCPY_HASH void add_pair(uint64_t& even, uint64_t& odd, uint64_t first, uint64_t second, uint64_t first_key, uint64_t second_key) {
  even += halves(first ^ first_key) + second;
  odd += halves(second ^ second_key) + first;
}

VELOCPY_HASH uint64_t scramble(uint64_t state, uint32_t lane) {
  state ^= state >> 47;
  state ^= kSecret[(sizeof kSecret - kStripe) / 8 + lane];
  return state * kPrime32x1;
}

// Number of blocks of a long input after which the state is scrambled: all but the block with the last byte.
VELOCPY_HASH uint32_t scrambled_blocks(uint32_t bytes) { return (bytes - 1) / kBlock; }

VELOCPY_HASH uint64_t stripe_lane(const uint8_t* stripe, uint32_t lane, uint64_t key) {
  return read64(stripe + 8 * (lane ^ 1)) + halves(read64(stripe + 8 * lane) ^ key);
}

// One worker's share of the additions to a lane of a long input after the last scrambling.
VELOCPY_HASH uint64_t tail_lane(const uint8_t* p, uint32_t bytes, uint32_t lane, uint32_t worker, uint32_t workers) {
  uint32_t begin = scrambled_blocks(bytes) * kBlock, stripes = (bytes - 1 - begin) / kStripe;
  uint64_t sum = 0;
#pragma unroll 1
  for (uint32_t s = worker; s < stripes; s += workers) sum += stripe_lane(p + begin + s * kStripe, lane, kSecret[s + lane]);
  if (worker == workers - 1) {
    constexpr uint32_t kLastKey = sizeof kSecret - kStripe - 7;
    sum += stripe_lane(p + bytes - kStripe, lane, secret(kLastKey + 8 * lane));
  }
  return sum;
}

// The contribution of lanes 2 * pair and 2 * pair + 1 to the result.
VELOCPY_HASH uint64_t merge_pair(uint64_t even, uint64_t odd, uint32_t pair) {
  constexpr uint32_t kMergeKey = 11;
  return fold(even ^ secret(kMergeKey + 16 * pair), odd ^ secret(kMergeKey + 16 * pair + 8));
}

VELOCPY_HASH uint64_t finish(uint64_t merged, uint32_t bytes) { return avalanche(merged + bytes * kPrime64x1); }

VELOCPY_HASH uint64_t mix16(const uint8_t* p, uint32_t key) { return fold(read64(p) ^ secret(key), read64(p + 8) ^ secret(key + 8)); }

VELOCPY_HASH uint64_t hash_0_to_16(const uint8_t* p, uint32_t n) {
  if (n > 8) {
    uint64_t low = read64(p) ^ secret(24) ^ secret(32), high = read64(p + n - 8) ^ secret(40) ^ secret(48);
    uint64_t turned = 0;
    for (int i = 0; i < 8; i++) turned |= (low >> 8 * i & 255) << (56 - 8 * i);
    return avalanche(n + turned + high + fold(low, high));
  }
  if (n >= 4) {
    uint64_t h = (static_cast<uint64_t>(read32(p)) << 32 | read32(p + n - 4)) ^ secret(8) ^ secret(16);
    h ^= (h << 49 | h >> 15) ^ (h << 24 | h >> 40);
    h *= kShuffle;
    h ^= (h >> 35) + n;
    h *= kShuffle;
    return h ^ h >> 28;
  }
  if (n > 0) {
    uint32_t text = static_cast<uint32_t>(p[0]) << 16 | static_cast<uint32_t>(p[n >> 1]) << 24 | p[n - 1] | n << 8;
    return avalanche64(text ^ static_cast<uint32_t>(kSecret[0] ^ kSecret[0] >> 32));
  }
  return avalanche64(secret(56) ^ secret(64));
}

VELOCPY_HASH uint64_t hash_17_to_128(const uint8_t* p, uint32_t n) {
  uint64_t h = n * kPrime64x1;
#pragma unroll 1
  for (uint32_t i = 0; i <= (n - 1) / 32; i++) h += mix16(p + 16 * i, 32 * i) + mix16(p + n - 16 * (i + 1), 32 * i + 16);
  return avalanche(h);
}

VELOCPY_HASH uint64_t hash_129_to_240(const uint8_t* p, uint32_t n) {
  constexpr uint32_t kSecondKey = 3, kLastKey = 136 - 17;
  uint64_t h = n * kPrime64x1;
#pragma unroll 1
  for (uint32_t i = 0; i < 8; i++) h += mix16(p + 16 * i, 16 * i);
  h = avalanche(h);
#pragma unroll 1
  for (uint32_t i = 8; i < n / 16; i++) h += mix16(p + 16 * i, 16 * (i - 8) + kSecondKey);
  return avalanche(h + mix16(p + n - 16, kLastKey));
}

// Hashes an input of at most kShort bytes. Its loops are short and rare, and are not unrolled.
VELOCPY_HASH uint64_t hash_short(const uint8_t* p, uint32_t n) {
  return n <= 16 ? hash_0_to_16(p, n) : n <= 128 ? hash_17_to_128(p, n) : hash_129_to_240(p, n);
}

}  // namespace xxh3
}  // namespace velocpy
