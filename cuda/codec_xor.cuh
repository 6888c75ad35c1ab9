// Mode Xrz of the codec: XOR with the reference, as planes of bytes without zeros (gocore/reduction/codec/xor.go, sparse.go).
//
// The body is: 2 bits a plane with its form, in 16 bits; 16 zero bits; the planes. A sparse plane has three bitmaps: the third whole, and
// of the second, the first and the plane itself only the bytes that are not zero.
//
// The planes lie in shared memory, each in a fixed part. A thread has 64 bytes of a plane, which are a byte of its second bitmap.
#pragma once

#include "codec_chunk.cuh"

namespace velocpy {

constexpr uint32_t kXorHead = 4, kPlaneZero = 0, kPlaneWhole = 1, kPlaneSparse = 2;

// Where byte `at` of the planes is. Without this, threads that read 64 bytes each would meet in the same banks.
VELOCPY_DEVICE uint32_t swizzle(uint32_t at) { return at ^ (at >> 7 & 3) << 4; }

template <class K>
struct Planes {
  static constexpr uint32_t kBytes = K::kChunkWords;  // of a plane
  static constexpr uint32_t kThreads = kBytes / 64;   // that share a plane
  static constexpr uint32_t kWarps = kThreads / 32;   // a plane has whole warps
  VELOCPY_DEVICE static uint32_t plane() { return thread_index() / kThreads; }
  VELOCPY_DEVICE static uint32_t thread() { return thread_index() % kThreads; }
};

// The lengths of the bitmaps of a plane of so many bytes.
struct Levels {
  uint32_t one, two, three;
  VELOCPY_DEVICE explicit Levels(uint32_t n) : one((n + 7) / 8), two((one + 7) / 8), three((two + 7) / 8) {}
};

// Writes a vector of a pass to the planes.
template <class K>
VELOCPY_DEVICE void store_planes(uint8_t* planes, uint32_t pass, const Vector& words) {
  Vector v = divide_bytes<K::kSize>(words);
  uint32_t at = vector_index(pass) * K::kWords;
  if (K::kSize == 1) store(reinterpret_cast<Vector*>(planes + swizzle(at)), v);
#pragma unroll
  for (uint32_t j = 0; j < K::kSize; j++) {
    uint8_t* to = planes + swizzle(j * Planes<K>::kBytes + at);
    if (K::kSize == 2) *reinterpret_cast<uint64_t*>(to) = j == 0 ? low_half(v) : high_half(v);
    if (K::kSize == 4) *reinterpret_cast<uint32_t*>(to) = v.word[j % 4];
    if (K::kSize == 8) *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(v.word[j / 2 % 4] >> 16 * (j % 2));
  }
}

template <class K>
VELOCPY_DEVICE Vector load_planes(const uint8_t* planes, uint32_t pass) {
  Vector v = {};
  uint32_t at = vector_index(pass) * K::kWords;
  if (K::kSize == 1) v = load(reinterpret_cast<const Vector*>(planes + swizzle(at)));
#pragma unroll
  for (uint32_t j = 0; j < K::kSize; j++) {
    const uint8_t* from = planes + swizzle(j * Planes<K>::kBytes + at);
    if (K::kSize == 2) {
      uint64_t two = *reinterpret_cast<const uint64_t*>(from);
      v.word[2 * j % 4] = static_cast<uint32_t>(two);
      v.word[(2 * j + 1) % 4] = static_cast<uint32_t>(two >> 32);
    }
    if (K::kSize == 4) v.word[j % 4] = *reinterpret_cast<const uint32_t*>(from);
    if (K::kSize == 8) v.word[j / 2 % 4] |= static_cast<uint32_t>(*reinterpret_cast<const uint16_t*>(from)) << 16 * (j % 2);
  }
  return unite_bytes<K::kSize>(v);
}

// Numbers of bytes that are not zero: of the plane, of the first and of the second bitmap. They share a register.
constexpr uint32_t kTwosAt = 12, kThreesAt = 21;
struct Counts {
  uint32_t ones, twos, threes;
  VELOCPY_DEVICE void add(uint32_t packed) {
    ones += packed & ((1 << kTwosAt) - 1);
    twos += packed >> kTwosAt & ((1 << (kThreesAt - kTwosAt)) - 1);
    threes += packed >> kThreesAt;
  }
};

// A thread's share of the bitmaps.
struct Marks {
  uint32_t one[2], two;
  Counts before;  // of the threads before in the warp
};

// The bits of bytes that are not zero.
VELOCPY_DEVICE uint32_t nonzero_bytes(uint32_t x) {
  uint32_t top = (((x & 0x7f7f7f7f) + 0x7f7f7f7f) | x) & 0x80808080;
  return (top >> 7) * 0x10204080 >> 28;  // bit 0 of byte i moves to bit 28 + i
}

// Fills in the thread's bitmaps, and counts[warp], of shared memory.
template <class K>
VELOCPY_DEVICE void measure_planes(Marks& m, const uint8_t* planes, uint32_t* counts) {
  m.one[0] = m.one[1] = m.two = 0;
#pragma unroll
  for (uint32_t i = 0; i < 4; i++) {
    Vector v = load(reinterpret_cast<const Vector*>(planes + swizzle(thread_index() * 64 + 16 * i)));
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) m.one[i / 2] |= nonzero_bytes(v.word[k]) << (16 * (i % 2) + 4 * k);
  }
  m.two = nonzero_bytes(m.one[0]) | nonzero_bytes(m.one[1]) << 4;
  uint32_t own = count_ones(m.one[0]) + count_ones(m.one[1]) + (count_ones(m.two) << kTwosAt) + ((m.two != 0) << kThreesAt), all;
  m.before = {};
  m.before.add(sum_before(own, all));
  if (lane_index() == 0) counts[warp_index()] = all;
}

// The forms and lengths of the planes.
struct Forms {
  uint32_t list;   // 2 bits each
  uint32_t bytes;  // of the body
  uint32_t at;     // in the body, of the plane that this thread shares
  Counts all;      // of that plane
};

template <class K>
VELOCPY_DEVICE Forms choose_forms(const uint32_t* counts, uint32_t words) {
  Levels levels(words);
  Forms f = {};
  f.bytes = kXorHead;
#pragma unroll
  for (uint32_t j = 0; j < K::kSize; j++) {
    Counts all = {};
#pragma unroll
    for (uint32_t w = 0; w < Planes<K>::kWarps; w++) all.add(counts[j * Planes<K>::kWarps + w]);
    if (j == Planes<K>::plane()) {
      f.at = f.bytes;
      f.all = all;
    }
    if (all.ones == 0) continue;
    uint32_t sparse = levels.three + all.threes + all.twos + all.ones;
    f.list |= (sparse < words ? kPlaneSparse : kPlaneWhole) << 2 * j;
    f.bytes += smaller(sparse, words);
  }
  return f;
}

// Adds the counts of the warps before this one that share its plane.
template <class K>
VELOCPY_DEVICE void add_warps(Counts& before, const uint32_t* counts) {
  uint32_t first = Planes<K>::plane() * Planes<K>::kWarps;
#pragma unroll
  for (uint32_t w = 0; w < Planes<K>::kWarps; w++)
    if (first + w < warp_index()) before.add(counts[first + w]);
}

// Whether no thread of the warp has so many bytes that are not zero that it is better to look at all 64.
VELOCPY_DEVICE bool few_bytes(const uint32_t (&one)[2]) {
  constexpr uint32_t kFew = 24;
  return max_lanes(count_ones(one[0]) + count_ones(one[1])) <= kFew;
}

// Calls f with the place in the planes of each of the thread's bytes that are not zero.
template <class F>
VELOCPY_DEVICE void for_each_byte(const uint32_t (&one)[2], F f) {
  uint32_t own = thread_index() * 64, turn = swizzle(own) ^ own;
#pragma unroll
  for (uint32_t i = 0; i < 2; i++)
#pragma unroll 1
    for (uint32_t left = one[i]; left != 0; left &= left - 1) f(own + ((32 * i + lowest_one(left)) ^ turn));
}

// Writes a body at a multiple of 4.
template <class K>
VELOCPY_DEVICE void write_xor(uint8_t* body, const uint8_t* planes, Marks m, const Forms& forms, const uint32_t* counts, uint32_t words) {
  using P = Planes<K>;
  if (thread_index() == 0) *reinterpret_cast<uint32_t*>(body) = forms.list;
  uint32_t form = forms.list >> 2 * P::plane() & 3, index = P::thread();
  uint8_t* to = body + forms.at;
  if (form == kPlaneWhole) {
    uint32_t begin = P::plane() * P::kBytes, done = 0;
    if (forms.at % 4 == 0) {
      done = words / 4 * 4;
      for (uint32_t k = 4 * index; k < done; k += 4 * P::kThreads)
        *reinterpret_cast<uint32_t*>(to + k) = *reinterpret_cast<const uint32_t*>(planes + swizzle(begin + k));
    }
    for (uint32_t k = done + index; k < words; k += P::kThreads) to[k] = planes[swizzle(begin + k)];
  } else if (form == kPlaneSparse) {
    Levels levels(words);
    add_warps<K>(m.before, counts);
    uint32_t some = ballot(m.two != 0);
    if (index % 8 == 0 && index / 8 < levels.three) to[index / 8] = static_cast<uint8_t>(some >> lane_index());
    to += levels.three;
    if (m.two != 0) to[m.before.threes] = static_cast<uint8_t>(m.two);
    to += forms.all.threes;
    uint8_t* ones = to + m.before.twos;
#pragma unroll
    for (uint32_t k = 0; k < 8; k++) {
      auto bits = static_cast<uint8_t>(m.one[k / 4] >> 8 * (k % 4));
      if (bits != 0) *ones++ = bits;
    }
    to += forms.all.twos + m.before.ones;
    if (few_bytes(m.one)) {
      for_each_byte(m.one, [&](uint32_t at) { *to++ = planes[at]; });
      return;
    }
    if (m.two == 0) return;
#pragma unroll 1
    for (uint32_t i = 0; i < 4; i++) {
      Vector v = load(reinterpret_cast<const Vector*>(planes + swizzle(thread_index() * 64 + 16 * i)));
#pragma unroll
      for (uint32_t k = 0; k < 16; k++) {
        auto byte = static_cast<uint8_t>(v.word[k / 4] >> 8 * (k % 4));
        if (byte != 0) *to++ = byte;
      }
    }
  }
}

// Where a plane begins in a body, and where its levels do.
struct PlaneStart {
  uint32_t at, two, one, bytes;
};

// Finds the starts of all planes; false if the body is malformed. Executed by a warp.
template <class K>
VELOCPY_DEVICE bool find_planes(PlaneStart* starts, const uint8_t* body, uint32_t bytes, uint32_t words) {
  if (bytes < kXorHead) return false;
  uint32_t forms = *reinterpret_cast<const uint32_t*>(body);
  if ((forms >> (2 * K::kSize - 1) >> 1) != 0) return false;
  Levels levels(words);
  // The number of ones in n bytes from `at` on; bytes behind the body do not count.
  auto ones = [&](uint32_t at, uint32_t n) {
    uint32_t sum = 0, end = smaller(at + n, bytes);
    for (uint32_t i = at / 4 + lane_index(); 4 * i < end; i += 32) {
      uint32_t word = reinterpret_cast<const uint32_t*>(body)[i];
      if (4 * i < at) word &= ~0u << 8 * (at - 4 * i);
      if (end - 4 * i < 4) word &= (1u << 8 * (end - 4 * i)) - 1;
      sum += count_ones(word);
    }
    return sum_lanes(sum);
  };
  uint32_t at = kXorHead;
#pragma unroll 1
  for (uint32_t j = 0; j < K::kSize; j++) {
    uint32_t form = forms >> 2 * j & 3;
    PlaneStart s = {at, 0, 0, 0};
    if (form > kPlaneSparse) return false;
    if (form == kPlaneWhole) at += words;
    if (form == kPlaneSparse) {
      s.two = at + levels.three;
      s.one = s.two + ones(at, levels.three);
      s.bytes = s.one + ones(s.two, s.one - s.two);
      at = s.bytes + ones(s.one, s.bytes - s.one);
    }
    if (at > bytes) return false;
    if (lane_index() == 0) starts[j] = s;
  }
  return at == bytes;
}

// The sum of a value over the threads of the plane that come before. `sums` is shared memory for a number per warp. Has two barriers.
template <class K>
VELOCPY_DEVICE uint32_t sum_in_plane(uint32_t value, uint32_t* sums) {
  uint32_t all, before = sum_before(value, all), first = Planes<K>::plane() * Planes<K>::kWarps;
  if (Planes<K>::kWarps == 1) return before;
  sync_block();
  if (lane_index() == 0) sums[warp_index()] = all;
  sync_block();
#pragma unroll
  for (uint32_t w = 0; w < Planes<K>::kWarps; w++)
    if (first + w < warp_index()) before += sums[first + w];
  return before;
}

// Reads the planes of a body whose starts were found: `room` holds the body from offset `head` on. Returns whether the thread found the
// body malformed. Has barriers.
template <class K>
VELOCPY_DEVICE bool read_planes_of_bytes(uint8_t* planes, const uint8_t* room, uint32_t head, const PlaneStart* starts, uint32_t words,
                                         uint32_t* sums) {
  using P = Planes<K>;
  const uint8_t* body = room + head;
  uint32_t index = P::thread(), form = *reinterpret_cast<const uint32_t*>(body) >> 2 * P::plane() & 3;
  PlaneStart s = starts[P::plane()];
  Levels levels(words);
  bool sparse = form == kPlaneSparse, bad = false;
  // All reads are within the body: find_planes counted the same bits.
  uint32_t three = sparse && index / 8 < levels.three ? body[s.at + index / 8] : 0;
  bool some = (three >> index % 8 & 1) != 0;
  bad = some && index >= levels.two;
  uint32_t rank = sum_in_plane<K>(some, sums);
  uint32_t two = some ? body[s.two + rank] : 0;
  uint32_t valid = 8 * index >= levels.one ? 0 : smaller(levels.one - 8 * index, 8);
  bad = bad || two >> valid != 0;
  rank = sum_in_plane<K>(count_ones(two), sums);
  uint32_t one[2] = {};
#pragma unroll
  for (uint32_t k = 0; k < 8; k++)
    if ((two >> k & 1) != 0) one[k / 4] |= static_cast<uint32_t>(body[s.one + rank++]) << 8 * (k % 4);
  valid = 64 * index >= words ? 0 : smaller(words - 64 * index, 64);
  bad = bad || (valid < 64 && pair(one[0], one[1]) >> valid != 0);
  rank = sum_in_plane<K>(count_ones(one[0]) + count_ones(one[1]), sums);

  uint32_t own = thread_index() * 64;
  const uint8_t* from = body + s.bytes + rank;
  if (form == kPlaneWhole) {
    // Neighbouring threads read neighbouring words.
    uint32_t begin = P::plane() * P::kBytes, shift = (head + s.at) % 4;
    auto* whole = reinterpret_cast<const uint32_t*>(room + (head + s.at - shift));
#pragma unroll
    for (uint32_t k = 0; k < 16; k++) {
      uint32_t at = k * P::kThreads + index, y = 0;
      if (4 * at < words) y = shift_pair(whole[at], shift == 0 ? 0 : whole[at + 1], 8 * shift);
      *reinterpret_cast<uint32_t*>(planes + swizzle(begin + 4 * at)) = y;
    }
  } else if (few_bytes(one)) {
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) store(reinterpret_cast<Vector*>(planes + own + 16 * k), Vector{});
    for_each_byte(one, [&](uint32_t at) { planes[at] = *from++; });
  } else {
    uint64_t bits = pair(one[0], one[1]);
#pragma unroll 1
    for (uint32_t i = 0; i < 4; i++, bits >>= 16) {
      uint32_t y[4] = {};
#pragma unroll
      for (uint32_t k = 0; k < 16; k++)
        if ((bits >> k & 1) != 0) y[k / 4] |= static_cast<uint32_t>(*from++) << 8 * (k % 4);
      store(reinterpret_cast<Vector*>(planes + swizzle(own + 16 * i)), {{y[0], y[1], y[2], y[3]}});
    }
  }
  sync_block();
  return bad;
}

}  // namespace velocpy
