// The words of a chunk in registers, for the codec (gocore/reduction/codec, docs/reduction-format.md).
//
// A block of 256 threads holds a chunk: thread t of a warp has vectors t, 32 + t, 64 + t and 96 + t of the warp's 2 KiB, so that a pass
// over one of them reads 512 bytes in a row. A group of 32 words of S bytes is a pass of 2 * S neighbouring lanes. Neither words nor groups
// are staged in shared memory; lanes exchange bits by shuffles.
#pragma once

#include "machine.cuh"
#include "parameters.h"

namespace velocpy {

constexpr uint32_t kCodecWarps = kCodecThreads / 32;
constexpr uint32_t kPasses = kChunkBytes / 16 / kCodecThreads;
static_assert(kPasses == 4, "a warp has two blocks of the hash");

// The kinds of elements by the bytes of a word and the bits of a float's exponent. Integers use the kind of their word, without mode Exp.
template <uint32_t S, uint32_t E>
struct Kind {
  static constexpr uint32_t kSize = S, kExponent = E;
  static constexpr uint32_t kWords = 16 / S;      // of a vector
  static constexpr uint32_t kGroupLanes = 2 * S;  // lanes that hold a group of 32 words
  static constexpr uint32_t kBits = 8 * S;
  static constexpr uint32_t kChunkWords = kChunkBytes / S;

  // Blocks of modes Diff and Step.
  static constexpr uint32_t kBlockWords = S <= 2 ? 32 : 8;
  static constexpr uint32_t kBlockLanes = kBlockWords / kWords;
  static constexpr uint32_t kBlocks = kChunkWords / kBlockWords;
  static constexpr uint32_t kPlaneBytes = kBlockWords / 8;
};

// The vectors of a thread.
struct Share {
  Vector pass[kPasses];
};

VELOCPY_DEVICE uint32_t lane_index() { return thread_index() % 32; }
VELOCPY_DEVICE uint32_t warp_index() { return thread_index() / 32; }

// The number in the chunk of a thread's vector.
VELOCPY_DEVICE uint32_t vector_index(uint32_t pass) { return warp_index() * (32 * kPasses) + pass * 32 + lane_index(); }

// Sums and differences of words, several in a register if S < 4.
template <uint32_t S>
VELOCPY_DEVICE uint32_t add(uint32_t a, uint32_t b) {
  if (S == 4) return a + b;
  constexpr uint32_t kTop = S == 2 ? 0x80008000 : 0x80808080;
  return ((a & ~kTop) + (b & ~kTop)) ^ ((a ^ b) & kTop);
}
template <uint32_t S>
VELOCPY_DEVICE uint32_t subtract(uint32_t a, uint32_t b) {
  if (S == 4) return a - b;
  constexpr uint32_t kTop = S == 2 ? 0x80008000 : 0x80808080;
  return ((a | kTop) - (b & ~kTop)) ^ (~(a ^ b) & kTop);
}

VELOCPY_DEVICE uint64_t pair(uint32_t low, uint32_t high) { return low | static_cast<uint64_t>(high) << 32; }

// The words of a minus those of b.
template <uint32_t S>
VELOCPY_DEVICE Vector subtract(const Vector& a, const Vector& b) {
  Vector d;
  if (S == 8) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      uint64_t x = pair(a.word[i], a.word[i + 1]) - pair(b.word[i], b.word[i + 1]);
      d.word[i] = static_cast<uint32_t>(x);
      d.word[i + 1] = static_cast<uint32_t>(x >> 32);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) d.word[i] = subtract<S>(a.word[i], b.word[i]);
  }
  return d;
}

template <uint32_t S>
VELOCPY_DEVICE Vector add(const Vector& a, const Vector& b) {
  Vector d;
  if (S == 8) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      uint64_t x = pair(a.word[i], a.word[i + 1]) + pair(b.word[i], b.word[i + 1]);
      d.word[i] = static_cast<uint32_t>(x);
      d.word[i + 1] = static_cast<uint32_t>(x >> 32);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) d.word[i] = add<S>(a.word[i], b.word[i]);
  }
  return d;
}

// A word in every place of 64 bits.
template <uint32_t S>
VELOCPY_DEVICE uint64_t repeat(uint64_t word) {
  constexpr uint64_t kOnes = S == 1 ? 0x0101010101010101 : S == 2 ? 0x0001000100010001 : S == 4 ? 0x0000000100000001 : 1;
  constexpr uint64_t kMask = S == 8 ? ~uint64_t{0} : (uint64_t{1} << S % 8 * 8) - 1;
  return (word & kMask) * kOnes;
}

template <uint32_t S>
VELOCPY_DEVICE Vector repeated(uint64_t word) {
  uint64_t two = repeat<S>(word);
  auto low = static_cast<uint32_t>(two), high = static_cast<uint32_t>(two >> 32);
  return {{low, high, low, high}};
}

// The differences of a vector's words from those before them; before has the word before the first in its top bits.
template <uint32_t S>
VELOCPY_DEVICE Vector differences(const Vector& v, uint64_t before) {
  Vector former;
  if (S == 8) {
    former = {{static_cast<uint32_t>(before), static_cast<uint32_t>(before >> 32), v.word[0], v.word[1]}};
  } else if (S == 4) {
    former = {{static_cast<uint32_t>(before >> 32), v.word[0], v.word[1], v.word[2]}};
  } else {
    former.word[0] = shift_pair(static_cast<uint32_t>(before >> 32), v.word[0], 32 - 8 * S % 32);
#pragma unroll
    for (int i = 1; i < 4; i++) former.word[i] = shift_pair(v.word[i - 1], v.word[i], 32 - 8 * S % 32);
  }
  return subtract<S>(v, former);
}

template <uint32_t S>
VELOCPY_DEVICE Vector zigzag(const Vector& d) {
  Vector z;
  if (S == 8) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      auto sign = static_cast<uint32_t>(static_cast<int32_t>(d.word[i + 1]) >> 31);
      z.word[i] = d.word[i] << 1 ^ sign;
      z.word[i + 1] = shift_pair(d.word[i], d.word[i + 1], 31) ^ sign;
    }
  } else {
    constexpr uint32_t kSigns = S == 1 ? 0xba98 : S == 2 ? 0xbb99 : 0xbbbb, kLow = S == 1 ? 0x01010101 : S == 2 ? 0x00010001 : 1;
#pragma unroll
    for (int i = 0; i < 4; i++) z.word[i] = (d.word[i] << 1 & ~kLow) ^ permute(d.word[i], 0, kSigns);
  }
  return z;
}

// The differences of zig-zag values.
template <uint32_t S>
VELOCPY_DEVICE Vector unzigzag(const Vector& z) {
  Vector d;
  if (S == 8) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      uint32_t sign = 0 - (z.word[i] & 1);
      d.word[i] = shift_pair(z.word[i], z.word[i + 1], 1) ^ sign;
      d.word[i + 1] = z.word[i + 1] >> 1 ^ sign;
    }
  } else {
    constexpr uint32_t kLow = S == 1 ? 0x01010101 : S == 2 ? 0x00010001 : 1;
    constexpr uint32_t kSpread = S == 1 ? 0xff : S == 2 ? 0xffff : 0xffffffff;
#pragma unroll
    for (int i = 0; i < 4; i++) d.word[i] = (z.word[i] >> 1 & ~(kLow << (8 * S - 1) % 32)) ^ (z.word[i] & kLow) * kSpread;
  }
  return d;
}

// Replaces the words of a vector by their running sums and returns the last of them.
template <uint32_t S>
VELOCPY_DEVICE uint64_t sum_words(Vector& v) {
  if (S == 8) {
    uint64_t x = pair(v.word[0], v.word[1]) + pair(v.word[2], v.word[3]);
    v.word[2] = static_cast<uint32_t>(x);
    v.word[3] = static_cast<uint32_t>(x >> 32);
    return x;
  }
  constexpr uint32_t kLast = S == 1 ? 0x3333 : S == 2 ? 0x3232 : 0x3210;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (S <= 2) v.word[i] = add<S>(v.word[i], v.word[i] << 8 * S % 32);
    if (S == 1) v.word[i] = add<S>(v.word[i], v.word[i] << 16);
    if (i > 0) v.word[i] = add<S>(v.word[i], permute(v.word[i - 1], 0, kLast));
  }
  return permute(v.word[3], 0, kLast) & (S == 1 ? 0xff : S == 2 ? 0xffff : 0xffffffff);
}

// Bits of a mask for the words of a vector of which only the first `valid` are there, by register.
template <uint32_t S>
VELOCPY_DEVICE Vector words_mask(uint32_t valid) {
  Vector m;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    int bits = static_cast<int>(valid * 8 * S) - 32 * i;
    m.word[i] = bits >= 32 ? 0xffffffff : bits <= 0 ? 0 : (1u << bits) - 1;
  }
  return m;
}

VELOCPY_DEVICE Vector select(const Vector& mask, const Vector& set, const Vector& clear) {
  Vector v;
#pragma unroll
  for (int i = 0; i < 4; i++) v.word[i] = (set.word[i] & mask.word[i]) | (clear.word[i] & ~mask.word[i]);
  return v;
}

// Exchanges index bits. A bit of data has an index of lane bits, register bits and, within a register, bits 4 to 0; the exchange moves
// every bit to the place whose index has two of these bits swapped. Each is its own reverse.

// A bit within the register, and that bit of the lane which Flip has.
template <uint32_t Bit, uint32_t Flip>
VELOCPY_DEVICE void exchange_lanes(uint32_t& x) {
  bool high = lane_index() & Flip;
  uint32_t other = from_lane(x, Flip);
  if (Bit >= 3) {
    x = permute(x, other, Bit == 4 ? (high ? 0x3276 : 0x5410) : (high ? 0x3715 : 0x6240));
    return;
  }
  constexpr uint32_t kClear = Bit == 2 ? 0x0f0f0f0f : Bit == 1 ? 0x33333333 : 0x55555555, kShift = 1 << Bit % 8;
  uint32_t keep = high ? ~kClear : kClear;
  x = (x & keep) | (shift_pair(other, other, high ? kShift : 32 - kShift) & ~keep);
}
template <uint32_t Bit, uint32_t Flip>
VELOCPY_DEVICE void exchange_lanes(Vector& x) {
#pragma unroll
  for (int i = 0; i < 4; i++) exchange_lanes<Bit, Flip>(x.word[i]);
}

// A bit within registers, and the one in which a (0) and b (1) differ.
template <uint32_t Bit>
VELOCPY_DEVICE void exchange_registers(uint32_t& a, uint32_t& b) {
  if (Bit >= 3) {
    uint32_t low = permute(a, b, Bit == 4 ? 0x5410 : 0x6240);
    b = permute(a, b, Bit == 4 ? 0x7632 : 0x7351);
    a = low;
    return;
  }
  constexpr uint32_t kClear = Bit == 2 ? 0x0f0f0f0f : Bit == 1 ? 0x33333333 : 0x55555555, kShift = 1 << Bit % 8;
  uint32_t low = (a & kClear) | (b << kShift & ~kClear);
  b = (a >> kShift & kClear) | (b & ~kClear);
  a = low;
}

// Two bits within a register; Mask has the places with the lower one set and the higher one clear, Shift apart from their partners.
template <uint32_t Shift, uint32_t Mask>
VELOCPY_DEVICE uint32_t exchange_within(uint32_t x) {
  uint32_t t = (x ^ x >> Shift) & Mask;
  return x ^ t ^ t << Shift;
}

template <uint32_t Bit>
VELOCPY_DEVICE void exchange_high(Vector& x) {
  exchange_registers<Bit>(x.word[0], x.word[2]);
  exchange_registers<Bit>(x.word[1], x.word[3]);
}
template <uint32_t Bit>
VELOCPY_DEVICE void exchange_low(Vector& x) {
  exchange_registers<Bit>(x.word[0], x.word[1]);
  exchange_registers<Bit>(x.word[2], x.word[3]);
}

// Turns the words of blocks of 32 (S <= 2) into planes, and back. Afterwards register r of a lane has plane plane_index(r) of the block.
template <uint32_t S>
VELOCPY_DEVICE void planes_of_words(Vector& x) {
  if (S == 1) {
    exchange_high<4>(x);
    exchange_low<3>(x);
  } else {
    x = {{permute(x.word[0], x.word[2], 0x5410), permute(x.word[0], x.word[2], 0x7632), permute(x.word[1], x.word[3], 0x5410),
          permute(x.word[1], x.word[3], 0x7632)}};
  }
  exchange_high<1>(x);
  exchange_low<0>(x);
  exchange_lanes<4, S>(x);
  if (S == 1) exchange_lanes<3, 1>(x);
  exchange_lanes<2, S>(x);
  if (S == 2) exchange_lanes<3, 1>(x);
}

template <uint32_t S>
VELOCPY_DEVICE void words_of_planes(Vector& x) {
  if (S == 2) exchange_lanes<3, 1>(x);
  exchange_lanes<2, S>(x);
  if (S == 1) exchange_lanes<3, 1>(x);
  exchange_lanes<4, S>(x);
  exchange_low<0>(x);
  exchange_high<1>(x);
  if (S == 1) {
    exchange_low<3>(x);
    exchange_high<4>(x);
  } else {
    x = {{permute(x.word[0], x.word[1], 0x5410), permute(x.word[2], x.word[3], 0x5410), permute(x.word[0], x.word[1], 0x7632),
          permute(x.word[2], x.word[3], 0x7632)}};
  }
}

template <uint32_t S>
VELOCPY_DEVICE uint32_t plane_index(uint32_t r) {
  uint32_t lane = lane_index();
  return S == 2 ? 8 * (lane % 2) + 4 * (lane / 2 % 2) + r : 4 * (lane % 2) + r;
}

// The same for blocks of 8 (S >= 4), whose planes are bytes. Afterwards byte j of register r of a lane has plane byte_index(r, j).
template <uint32_t S>
VELOCPY_DEVICE void bytes_of_words(Vector& x) {
  if (S == 4) {
    exchange_lanes<2, 1>(x);
    exchange_high<1>(x);
    exchange_low<0>(x);
  } else {
    exchange_lanes<2, 2>(x);
    exchange_lanes<1, 1>(x);
    exchange_high<0>(x);
  }
}

template <uint32_t S>
VELOCPY_DEVICE void words_of_bytes(Vector& x) {
  bytes_of_words<S>(x);  // none of the exchanges shares an index bit with another
}

template <uint32_t S>
VELOCPY_DEVICE uint32_t byte_index(uint32_t r, uint32_t j) {
  uint32_t lane = lane_index();
  return S == 4 ? 8 * j + 4 * (lane % 2) + r : 32 * (r % 2) + 8 * j + 2 * (lane % 4) + r / 2;
}

// Turns the bytes of the words of a vector into byte planes: bytes j of all words lie together, by j. And back.
template <uint32_t S>
VELOCPY_DEVICE Vector divide_bytes(const Vector& v) {
  if (S == 1) return v;
  const uint32_t* x = v.word;
  if (S == 2) {
    return {{permute(x[0], x[1], 0x6420), permute(x[2], x[3], 0x6420), permute(x[0], x[1], 0x7531), permute(x[2], x[3], 0x7531)}};
  }
  if (S == 4) {
    Vector y = v;
    exchange_high<4>(y);
    exchange_low<3>(y);
    return y;
  }
  uint32_t a = permute(x[0], x[2], 0x5140), b = permute(x[0], x[2], 0x7362);
  return {{a, b, permute(x[1], x[3], 0x5140), permute(x[1], x[3], 0x7362)}};
}

template <uint32_t S>
VELOCPY_DEVICE Vector unite_bytes(const Vector& v) {
  const uint32_t* x = v.word;
  if (S == 2) {
    return {{permute(x[0], x[2], 0x5140), permute(x[0], x[2], 0x7362), permute(x[1], x[3], 0x5140), permute(x[1], x[3], 0x7362)}};
  }
  if (S == 8) {
    return {{permute(x[0], x[1], 0x6420), permute(x[2], x[3], 0x6420), permute(x[0], x[1], 0x7531), permute(x[2], x[3], 0x7531)}};
  }
  return divide_bytes<S>(v);
}

}  // namespace velocpy
