// Mode Exp of the codec: short codes for the exponents of floats (gocore/reduction/codec/exponent.go).
//
// The body is: base (16 bits), bits of a code (8), a zero; the planes of each group, those of the codes first; the low bits of the words as
// arrays of bytes or larger units; the exponents without a code.
#pragma once

#include "codec_chunk.cuh"

namespace velocpy {

constexpr uint32_t kMostCodeBits = 4, kCodesHead = 4;

// How a word is divided. The top 16 bits are sign, exponent and the high bits of the mantissa.
template <class K>
struct Float {
  static constexpr bool kHalf = K::kSize == 2;  // a register has two words
  static constexpr uint32_t kExponents = 1 << K::kExponent, kMask = kExponents - 1;
  static constexpr uint32_t kShift = 15 - K::kExponent;                                  // of the exponent within the top bits
  static constexpr uint32_t kRest = K::kExponent == 5 ? 3 : K::kExponent == 11 ? 5 : 0;  // planes of sign and mantissa bits
  static constexpr uint32_t kLow = K::kSize == 8 ? 6 : K::kSize - 1;                     // bytes of a word in the arrays
  static constexpr uint32_t kEscape = K::kExponent > 8 ? 2 : 1;                          // bytes of an escape
  static constexpr uint32_t kParts = K::kSize == 8 ? 2 : 4;                              // registers with top bits
  static constexpr uint32_t kOnes = kHalf ? 0x00010001 : 1;

  // A register with top bits: of two words in its halves, or of one.
  VELOCPY_DEVICE static uint32_t top(const Vector& v, uint32_t part) {
    return kHalf ? v.word[part] : v.word[K::kSize == 8 ? 2 * part + 1 : part] >> 16;
  }
  VELOCPY_DEVICE static uint32_t exponents(uint32_t top) { return top >> kShift & kMask * kOnes; }
};

// The choice for a chunk.
struct Codes {
  uint32_t bits, base, escapes;
};

template <class K>
VELOCPY_DEVICE uint32_t exp_bytes(const Codes& c, uint32_t groups) {
  using F = Float<K>;
  return kCodesHead + groups * ((c.bits + F::kRest) * 4 + F::kLow * 32) + c.escapes * F::kEscape;
}

// Counts the exponents of a thread's words.
template <class K>
VELOCPY_DEVICE void count_exponents(const Share& x, uint32_t words, uint32_t* counts) {
  using F = Float<K>;
#pragma unroll
  for (uint32_t pass = 0; pass < kPasses; pass++) {
    uint32_t valid = words == K::kChunkWords ? K::kWords : valid_words<K>(words, pass);
#pragma unroll
    for (uint32_t part = 0; part < F::kParts; part++) {
      uint32_t e = F::exponents(F::top(x.pass[pass], part));
      if (F::kHalf) {
        if (2 * part < valid) increment(&counts[e & 0xffff]);
        if (2 * part + 1 < valid) increment(&counts[e >> 16]);
      } else if (part < valid) {
        increment(&counts[e]);
      }
    }
  }
}

// For codes of k bits, the entry k - 1: the words of the best range, and below them the base, subtracted from the largest.
using Ranges = uint32_t[kMostCodeBits];

// Finds the best ranges. Executed by several warps, each of which looks at every so many bases and raises the entries, zero before, to its
// own.
template <class K>
VELOCPY_DEVICE void find_ranges(Ranges& ranges, const uint32_t* counts, uint32_t warp, uint32_t warps) {
  using F = Float<K>;
  uint32_t least = F::kExponents - 1, most = 0;
#pragma unroll 8
  for (uint32_t e = lane_index(); e < F::kExponents; e += 32) {
    if (counts[e] == 0) continue;
    least = smaller(least, e);
    most = e;
  }
  least = min_lanes(least);
  most = max_lanes(most);
  Ranges best = {};
  constexpr uint32_t kLast = F::kExponents - (1 << kMostCodeBits);
  for (uint32_t from = smaller(least, kLast) + 32 * warp; from <= most; from += 32 * warps) {
    uint32_t base = from + lane_index(), sum = 0;
#pragma unroll
    for (uint32_t k = 1; k <= kMostCodeBits; k++) {
#pragma unroll
      for (uint32_t i = (1u << (k - 1)) - 1; i < (1u << k) - 1; i++) sum += base + i < F::kExponents ? counts[base + i] : 0;
      uint32_t last = F::kExponents - (1 << k);
      bool possible = base >= smaller(least, last) && base <= smaller(most, last);
      uint32_t key = sum * F::kExponents + F::kMask - (base & F::kMask);
      if (possible && key > best[k - 1]) best[k - 1] = key;
    }
  }
#pragma unroll
  for (uint32_t k = 0; k < kMostCodeBits; k++) {
    uint32_t key = max_lanes(best[k]);
    if (lane_index() == 0 && key != 0) raise(&ranges[k], key);
  }
}

// The codes with the shortest body: of equal ones those with the fewest bits, and then with the smallest base.
template <class K>
VELOCPY_DEVICE Codes choose_codes(const Ranges& ranges, uint32_t words) {
  using F = Float<K>;
  Codes choice = {};
  uint32_t shortest = 0, groups = (words + 31) / 32;
#pragma unroll
  for (uint32_t k = 1; k <= kMostCodeBits; k++) {
    uint32_t key = ranges[k - 1];
    Codes c = {k, F::kMask - key % F::kExponents, words - key / F::kExponents};
    uint32_t bytes = exp_bytes<K>(c, groups);
    if (k > 1 && bytes >= shortest) continue;
    choice = c;
    shortest = bytes;
  }
  return choice;
}

// Eight neighbouring words are a unit. Their values of up to 4 bits lie in one register, in each of the lanes that have words of the unit:
// bit 4 of the place is bit 0 of the word's number, then come bits 1 and 2 of the number, and then those of the value. That order takes two
// exchanges to planes.
template <class K>
struct Units {
  static constexpr uint32_t kLanes = K::kSize / 2;  // lanes of a unit

  VELOCPY_DEVICE static uint32_t unit() { return lane_index() / kLanes % 4; }  // of the group
  VELOCPY_DEVICE static bool leads() { return lane_index() % kLanes == 0; }

  // Where the value of the part's word is, or the first of its two.
  VELOCPY_DEVICE static uint32_t place(uint32_t part) {
    if (K::kSize == 2) return 4 * (part / 2) + 8 * (part % 2);
    if (K::kSize == 4) return 16 * (part % 2) + 8 * (part / 2);
    return 16 * part;
  }
  // Where the values of the lane's words begin.
  VELOCPY_DEVICE static uint32_t lane_place() {
    uint32_t lane = lane_index();
    return K::kSize == 2 ? 0 : K::kSize == 4 ? 4 * (lane % 2) : 8 * (lane % 2) + 4 * (lane / 2 % 2);
  }

  // Turns values into planes: byte b has bit b of the unit's words.
  VELOCPY_DEVICE static uint32_t planes(uint32_t values) {
    values <<= lane_place();
#pragma unroll
    for (uint32_t flip = 1; flip < kLanes; flip *= 2) values |= from_lane(values, flip);
    values = exchange_within<15, 0x0000aaaa>(values);
    values = exchange_within<6, 0x00cc00cc>(values);
    return permute(values, 0, 0x3120);
  }
  // The reverse. The lane's values are at the places of the parts.
  VELOCPY_DEVICE static uint32_t values(uint32_t planes) {
    planes = permute(planes, 0, 0x3120);
    planes = exchange_within<6, 0x00cc00cc>(planes);
    planes = exchange_within<15, 0x0000aaaa>(planes);
    return planes >> lane_place();
  }
  // Exchanges planes of units and units of planes: unit u of a group gets plane u of the whole group, or gives it.
  VELOCPY_DEVICE static void spread(uint32_t& planes) {
    exchange_lanes<4, 2 * kLanes>(planes);
    exchange_lanes<3, kLanes>(planes);
  }
  // Marks the words of the lane whose codes consist of ones, in the lowest bits.
  VELOCPY_DEVICE static uint32_t marks(uint32_t planes, uint32_t bits) {
    planes |= bits >= 4 ? 0 : 0xffffffffu << 8 * bits;
    planes &= planes >> 16;
    planes &= planes >> 8;
    return planes >> lane_index() % kLanes * K::kWords & ((1u << K::kWords) - 1);
  }
};

// The parts of a body.
template <class K>
struct ExpBody {
  using F = Float<K>;
  uint32_t groups, bits;
  VELOCPY_DEVICE uint32_t planes(uint32_t g) const { return kCodesHead + g * (bits + F::kRest) * 4; }
  VELOCPY_DEVICE uint32_t low() const { return planes(groups); }
  VELOCPY_DEVICE uint32_t escapes() const { return low() + groups * 32 * F::kLow; }
};

// Where a thread's escapes begin by pass, and their number.
struct Escapes {
  uint32_t at[kPasses], marks[kPasses];
};

// Finds the places of marked words. `counts` is shared memory for a number per warp. Has a barrier.
VELOCPY_DEVICE uint32_t place_escapes(Escapes& e, uint32_t* counts) {
  static_assert(kPasses == 4, "two passes share a register");
  uint32_t all[2], before[2];
#pragma unroll
  for (uint32_t i = 0; i < 2; i++) before[i] = sum_before(count_ones(e.marks[2 * i]) | count_ones(e.marks[2 * i + 1]) << 16, all[i]);
  uint32_t of_warp = (all[0] & 0xffff) + (all[0] >> 16) + (all[1] & 0xffff) + (all[1] >> 16);
  if (lane_index() == 0) counts[warp_index()] = of_warp;
  sync_block();
  uint32_t at = 0, total = 0;
#pragma unroll
  for (uint32_t w = 0; w < kCodecWarps; w++) {
    if (w == warp_index()) at = total;
    total += counts[w];
  }
#pragma unroll
  for (uint32_t i = 0; i < kPasses; i++) {
    e.at[i] = at + (before[i / 2] >> 16 * (i % 2) & 0xffff);
    at += all[i / 2] >> 16 * (i % 2) & 0xffff;
  }
  return total;
}

// The words' values by place, given those of a part.
template <class K, class F>
VELOCPY_DEVICE uint32_t gather_values(F of_part) {
  uint32_t values = 0;
#pragma unroll
  for (uint32_t part = 0; part < Float<K>::kParts; part++) values |= of_part(part) << Units<K>::place(part);
  return values;
}

// Writes a body at a multiple of 4. `counts` is shared memory for a number per warp. Has a barrier.
template <class K>
VELOCPY_DEVICE void write_exp(uint8_t* body, const Share& x, uint32_t words, const Codes& codes, uint32_t* counts) {
  using F = Float<K>;
  using U = Units<K>;
  ExpBody<K> parts = {(words + 31) / 32, codes.bits};
  uint32_t escape = (1u << codes.bits) - 1;
  auto* to = reinterpret_cast<uint32_t*>(body);
  if (thread_index() == 0) to[0] = codes.base | codes.bits << 16;
  Escapes escapes;
#pragma unroll
  for (uint32_t pass = 0; pass < kPasses; pass++) {
    const Vector& v = x.pass[pass];
    uint32_t g = vector_index(pass) / K::kGroupLanes;
    Vector mask = {{~0u, ~0u, ~0u, ~0u}};
    if (words != K::kChunkWords) mask = words_mask<K::kSize>(valid_words<K>(words, pass));
    uint32_t planes = U::planes(gather_values<K>([&](uint32_t part) {
      uint32_t code = (F::exponents(F::top(v, part)) + (F::kExponents - codes.base) * F::kOnes) & F::kMask * F::kOnes;
      if (F::kHalf) {
        uint32_t over = permute(code + (0x8000 - escape) * F::kOnes, 0, 0xbb99);
        code = (code & ~over) | (escape * F::kOnes & over);
      } else {
        code = smaller(code, escape);
      }
      return code & (F::kHalf ? mask.word[part] : mask.word[K::kSize == 8 ? 2 * part : part]);
    }));
    escapes.marks[pass] = U::marks(planes, codes.bits);
    U::spread(planes);
    bool inside = g < parts.groups && U::leads();
    uint32_t* group = to + parts.planes(g) / 4;
    if (inside && U::unit() < codes.bits) group[U::unit()] = planes;
    if (F::kRest > 0) {
      uint32_t rest = U::planes(gather_values<K>([&](uint32_t part) {
        uint32_t top = F::top(v, part);
        return F::kHalf ? (top >> 8 & 0x00030003) | (top >> 13 & 0x00040004) : top & 15;
      }));
      U::spread(rest);
      if (inside && U::unit() < smaller(F::kRest, 4)) group[codes.bits + U::unit()] = rest;
    }
    if (F::kRest > 4) {
      uint32_t sign = U::planes(gather_values<K>([&](uint32_t part) { return F::top(v, part) >> 15 & 1; }));
      U::spread(sign);
      if (inside && U::unit() == 0) group[codes.bits + 4] = sign;
    }
    if (g < parts.groups) {
      uint32_t* low = to + parts.low() / 4;
      uint32_t n = vector_index(pass), all = parts.groups * 8;  // all: words of 4 bytes of an array of bytes
      const uint32_t* w = v.word;
      if (K::kSize == 2) {
        uint32_t b[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) b[i] = K::kExponent == 5 ? w[i] : (w[i] & 0x007f007f) | (w[i] >> 8 & 0x00800080);
        low[2 * n] = permute(b[0], b[1], 0x6420);
        low[2 * n + 1] = permute(b[2], b[3], 0x6420);
      } else if (K::kSize == 4) {
        uint32_t b[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) b[i] = (w[i] >> 16 & 0x7f) | (w[i] >> 24 & 0x80);
        low[2 * n] = permute(w[0], w[1], 0x5410);
        low[2 * n + 1] = permute(w[2], w[3], 0x5410);
        low[2 * all + n] = permute(permute(b[0], b[1], 0x0040), permute(b[2], b[3], 0x0040), 0x5410);
      } else {
        low[2 * n] = w[0];
        low[2 * n + 1] = w[2];
        low[4 * all + n] = permute(w[1], w[3], 0x5410);
      }
    }
  }
  place_escapes(escapes, counts);
#pragma unroll
  for (uint32_t pass = 0; pass < kPasses; pass++) {
    const Vector& v = x.pass[pass];
    uint8_t* out = body + parts.escapes() + escapes.at[pass] * F::kEscape;
    for (uint32_t marks = escapes.marks[pass]; marks != 0; marks &= marks - 1, out += F::kEscape) {
      uint32_t i = lowest_one(marks), part = F::kHalf ? i / 2 : i;
      uint32_t low = part & 1 ? F::top(v, 1) : F::top(v, 0), high = F::kParts == 2 ? 0
                                                                    : part & 1     ? F::top(v, 3 % F::kParts)
                                                                                   : F::top(v, 2 % F::kParts);
      uint32_t e = F::exponents(part & 2 ? high : low);
      if (F::kHalf) e = e >> 16 * (i % 2) & 0xffff;
      out[0] = static_cast<uint8_t>(e);
      if (F::kEscape == 2) out[1] = static_cast<uint8_t>(e >> 8);
    }
  }
}

// Reads the words of a body of `bytes` bytes at a multiple of 4; reads of a malformed body stay below kChunkBytes. Returns whether the
// thread found it malformed. `counts` is shared memory for a number per warp. Has a barrier.
template <class K>
VELOCPY_DEVICE bool read_exp(Share& x, const uint8_t* body, uint32_t bytes, uint32_t words, uint32_t* counts) {
  using F = Float<K>;
  using U = Units<K>;
  auto* from = reinterpret_cast<const uint32_t*>(body);
  Codes codes = {from[0] >> 16 & 255, from[0] & 0xffff, 0};
  ExpBody<K> parts = {(words + 31) / 32, codes.bits};
  if (bytes < kCodesHead || codes.bits < 1 || codes.bits > kMostCodeBits || from[0] >> 24 != 0 ||
      codes.base + (1u << codes.bits) > F::kExponents || bytes < exp_bytes<K>(codes, parts.groups))
    return true;  // the same for all threads
  Escapes escapes;
#pragma unroll
  for (uint32_t pass = 0; pass < kPasses; pass++) {
    Vector& v = x.pass[pass];
    uint32_t g = vector_index(pass) / K::kGroupLanes, unit = U::unit();
    bool inside = g < parts.groups;
    const uint32_t* group = from + parts.planes(inside ? g : 0) / 4;
    const uint32_t* low = from + parts.low() / 4;
    uint32_t n = inside ? vector_index(pass) : 0, all = parts.groups * 8;
    uint32_t planes = unit < codes.bits ? group[unit] : 0;
    U::spread(planes);
    escapes.marks[pass] = U::marks(planes, codes.bits);
    if (words != K::kChunkWords) escapes.marks[pass] &= (1u << valid_words<K>(words, pass)) - 1;
    uint32_t values = U::values(planes), rest = 0, sign = 0;
    if (F::kRest > 0) {
      rest = unit < smaller(F::kRest, 4) ? group[codes.bits + unit] : 0;
      U::spread(rest);
      rest = U::values(rest);
    }
    if (F::kRest > 4) {
      sign = unit == 0 ? group[codes.bits + 4] : 0;
      U::spread(sign);
      sign = U::values(sign);
    }
    uint32_t tops[F::kParts];
#pragma unroll
    for (uint32_t part = 0; part < F::kParts; part++) {
      uint32_t place = U::place(part), e = (values >> place & 15 * F::kOnes) + codes.base * F::kOnes;
      uint32_t top = e << F::kShift;
      uint32_t r = rest >> place & 15 * F::kOnes;
      if (K::kExponent == 5) top |= (r & 0x00030003) << 8 | (r & 0x00040004) << 13;
      if (K::kExponent == 11) top |= r | (sign >> place & 1) << 15;
      tops[part] = top;
    }
    if (K::kSize == 2) {
      uint32_t b[2] = {low[2 * n], low[2 * n + 1]};
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) {
        uint32_t two = permute(b[i / 2], 0, i % 2 ? 0x4342 : 0x4140);
        v.word[i] = tops[i] | (K::kExponent == 5 ? two : (two & 0x007f007f) | (two & 0x00800080) << 8);
      }
    } else if (K::kSize == 4) {
      uint32_t b = low[2 * all + n];
#pragma unroll
      for (uint32_t i = 0; i < 4; i++) {
        uint32_t one = b >> 8 * i & 255, half = low[2 * n + i / 2] >> 16 * (i % 2) & 0xffff;
        v.word[i] = (tops[i % F::kParts] | (one & 0x7f) | (one & 0x80) << 8) << 16 | half;
      }
    } else {
      uint32_t halves = low[4 * all + n];
      v = {{low[2 * n], tops[0] << 16 | (halves & 0xffff), low[2 * n + 1], tops[1] << 16 | halves >> 16}};
    }
  }
  codes.escapes = place_escapes(escapes, counts);
  bool bad = bytes != exp_bytes<K>(codes, parts.groups);
#pragma unroll
  for (uint32_t pass = 0; pass < kPasses; pass++) {
    uint32_t at = parts.escapes() + escapes.at[pass] * F::kEscape;
#pragma unroll
    for (uint32_t i = 0; i < K::kWords; i++) {
      if ((escapes.marks[pass] >> i & 1) == 0 || at + F::kEscape > bytes) continue;
      uint32_t e = body[at];
      if (F::kEscape == 2) e |= static_cast<uint32_t>(body[at + 1]) << 8;
      bad = bad || e > F::kMask;
      uint32_t& word = x.pass[pass].word[F::kHalf ? i / 2 : K::kSize == 8 ? (2 * i + 1) % 4 : i % 4];
      uint32_t shift = F::kShift + (F::kHalf ? 16 * (i % 2) : 16);
      word = (word & ~(F::kMask << shift)) | (e & F::kMask) << shift;
      at += F::kEscape;
    }
  }
  return bad;
}

}  // namespace velocpy
