// Modes Diff and Step of the codec: differences of neighbouring words, as bit planes of blocks (gocore/reduction/codec: diff.go,
// widths.go).
//
// The body is: the first word, as the base; the order of the differences; the widths of the blocks; the planes of each block. The widths
// are stored as their own differences: for each group of 32 a byte with its number of planes, zeros up to a multiple of 4, and the planes.
#pragma once

#include "codec_chunk.cuh"

namespace velocpy {

constexpr uint32_t kMostBlocks = 512, kMostRows = kMostBlocks / 32;

VELOCPY_DEVICE constexpr uint32_t diff_head(uint32_t size) { return (size < 4 ? 4 : size) + 4; }

// The widths of blocks, and where their planes begin, in planes. In shared memory.
struct alignas(16) Blocks {
  uint8_t width[kMostBlocks];
  uint16_t at[kMostBlocks];
  uint8_t row[kMostRows];  // of each 32 widths: where the planes of their own form begin
};

template <class K>
VELOCPY_DEVICE uint32_t blocks_of(uint32_t words) {
  return (words + K::kBlockWords - 1) / K::kBlockWords;
}

// The word before the first of a pass, and its difference from the one before it, in the top bits.
struct Edge {
  uint64_t word, change;
};

// What precedes the vector of this lane: the last words of the lane before. `carry` has those of the pass before, and gets those of this
// one.
template <uint32_t S>
VELOCPY_DEVICE uint64_t before_vector(const Vector& v, uint64_t& carry) {
  uint32_t lane = (lane_index() + 31) % 32;
  uint64_t other = S == 8 ? at_lane(pair(v.word[2], v.word[3]), lane) : static_cast<uint64_t>(at_lane(v.word[3], lane)) << 32;
  uint64_t before = lane_index() == 0 ? carry : other;
  carry = other;
  return before;
}

// The words whose differences are stored: those of the chunk, or with R their changes since a reference. A mask of 0 turns the reference to
// zeros, so that the same code serves mode Diff.
template <class K, bool R>
struct Differences {
  static constexpr uint32_t S = K::kSize;
  const Share& x;
  const Share& reference;
  uint32_t words, mask;
  Edge edge;

  VELOCPY_DEVICE static Vector change(const Vector& v, const Vector& reference, uint32_t mask) {
    if (!R) return v;
    Vector r = reference;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) r.word[i] &= mask;
    return subtract<S>(v, r);
  }
  VELOCPY_DEVICE Vector vector(uint32_t pass) const { return change(x.pass[pass], reference.pass[pass], mask); }

  // `last` has the last vector of each warp. Before the first word of the chunk there is the same word.
  VELOCPY_DEVICE void set_edge(const Vector* last, const Vector* last_reference) {
    uint32_t warp = warp_index(), former = warp == 0 ? 0 : warp - 1;
    Vector v = change(last[former], last_reference[former], mask), first = vector(0), d = differences<S>(v, 0);
    edge = {pair(v.word[2], v.word[3]), pair(d.word[2], d.word[3])};
    if (warp == 0) edge = {repeat<S>(pair(first.word[0], first.word[1])), 0};
  }

  // Zig-zag values; behind the last word they are 0.
  VELOCPY_DEVICE Vector values(uint32_t pass, const Vector& d) const {
    Vector z = zigzag<S>(d);
    if (words != K::kChunkWords) z = select(words_mask<S>(valid_words<K>(words, pass)), z, Vector{});
    return z;
  }

  // Calls f with the values of each pass, of order 1 and 2, or of the one order that is wanted.
  template <class F>
  VELOCPY_DEVICE void both(F f) const {
    Edge carry = edge;
#pragma unroll
    for (uint32_t pass = 0; pass < kPasses; pass++) {
      Vector y = vector(pass), d = differences<S>(y, before_vector<S>(y, carry.word));
      f(pass, values(pass, d), values(pass, differences<S>(d, before_vector<S>(d, carry.change))));
    }
  }
  template <class F>
  VELOCPY_DEVICE void of_order(uint32_t order, F f) const {
    Edge carry = edge;
#pragma unroll
    for (uint32_t pass = 0; pass < kPasses; pass++) {
      Vector y = vector(pass), d = differences<S>(y, before_vector<S>(y, carry.word));
      if (order == 2) d = differences<S>(d, before_vector<S>(d, carry.change));
      f(pass, values(pass, d));
    }
  }
};

// The number of bits of a lane's largest value.
template <uint32_t S>
VELOCPY_DEVICE uint32_t width_of(const Vector& z) {
  uint32_t low = z.word[0] | z.word[2], high = z.word[1] | z.word[3];
  if (S == 8) return high != 0 ? 32 + bit_length(high) : bit_length(low);
  low |= high;
  if (S <= 2) low = (low | low >> 16) & 0xffff;
  if (S == 1) low = (low | low >> 8) & 0xff;
  return bit_length(low);
}

// Fills in the widths for both orders.
template <class K, bool R>
VELOCPY_DEVICE void measure_widths(Blocks* orders, const Differences<K, R>& differences) {
  differences.both([&](uint32_t pass, const Vector& first, const Vector& second) {
    uint32_t one = width_of<K::kSize>(first), two = width_of<K::kSize>(second);
#pragma unroll
    for (uint32_t flip = 1; flip < K::kBlockLanes; flip *= 2) {
      uint32_t others = from_lane(one | two << 16, flip);
      one = larger(one, others & 0xffff);
      two = larger(two, others >> 16);
    }
    if (lane_index() % K::kBlockLanes != 0) return;
    orders[0].width[vector_index(pass) / K::kBlockLanes] = static_cast<uint8_t>(one);
    orders[1].width[vector_index(pass) / K::kBlockLanes] = static_cast<uint8_t>(two);
  });
}

// Zig-zag values of the differences of widths: that of block 32 * row + lane; 0 behind the last block.
VELOCPY_DEVICE uint32_t width_value(const Blocks& list, uint32_t row, uint32_t blocks) {
  uint32_t b = 32 * row + lane_index();
  if (b >= blocks) return 0;
  uint32_t d = list.width[b] - (b == 0 ? 0u : list.width[b - 1]);
  return (d << 1 ^ (0 - (d >> 7 & 1))) & 0xff;
}

// Finds where the planes of each block begin, and returns the length of the body. The widths behind the last block become 0. Executed by a
// warp.
template <class K>
VELOCPY_DEVICE uint32_t place_blocks(Blocks& list, uint32_t blocks) {
  constexpr uint32_t kEach = K::kBlocks / 32, kRegisters = kEach / 4, kRowLanes = 32 / kEach;  // a lane has neighbouring widths
  uint32_t lane = lane_index(), first = lane * kEach, planes_of_widths, planes = 0, all;
  auto* widths = reinterpret_cast<uint32_t*>(list.width + first);
  Vector w = {}, there = words_mask<1>(blocks > first ? smaller(blocks - first, kEach) : 0);
#pragma unroll
  for (uint32_t i = 0; i < kRegisters; i++) {
    w.word[i] = widths[i] & there.word[i];
    if (there.word[i] != ~0u) widths[i] = w.word[i];
    uint32_t two = (w.word[i] & 0x00ff00ff) + (w.word[i] >> 8 & 0x00ff00ff);
    planes += (two & 0xffff) + (two >> 16);
  }
  uint32_t former = at_lane(w.word[kRegisters - 1], lane - 1);
  Vector z = zigzag<1>(differences<1>(w, lane == 0 ? 0 : pair(0, former)));
  uint32_t bits = 0;
#pragma unroll
  for (uint32_t i = 0; i < kRegisters; i++) bits |= z.word[i] & there.word[i];
#pragma unroll
  for (uint32_t flip = 1; flip < kRowLanes; flip *= 2) bits |= from_lane(bits, flip);
  bits |= bits >> 16;
  bool leads = lane % kRowLanes == 0;
  uint32_t row = sum_before(leads ? bit_length((bits | bits >> 8) & 0xff) : 0, planes_of_widths);
  if (leads) list.row[lane / kRowLanes] = static_cast<uint8_t>(row);
  uint32_t at = sum_before(planes, all), places[kEach / 2] = {};
#pragma unroll
  for (uint32_t i = 0; i < kEach; i++) {
    places[i / 2] |= at << 16 * (i % 2);
    at += w.word[i / 4] >> 8 * (i % 4) & 0xff;
  }
#pragma unroll
  for (uint32_t i = 0; i < kEach / 2; i += 4)
    store(reinterpret_cast<Vector*>(list.at + first + 2 * i), {{places[i], places[i + 1], places[i + 2], places[i + 3]}});
  return diff_head(K::kSize) + round_up((blocks + 31) / 32, 4) + 4 * planes_of_widths + K::kPlaneBytes * all;
}

// Writes the form of the widths at a multiple of 4.
VELOCPY_DEVICE void write_widths(uint8_t* to, const Blocks& list, uint32_t blocks) {
  uint32_t groups = (blocks + 31) / 32, lane = lane_index();
  if (thread_index() < round_up(groups, 4) - groups) to[groups + thread_index()] = 0;
#pragma unroll 1
  for (uint32_t row = warp_index(); row < groups; row += kCodecWarps) {
    auto* planes = reinterpret_cast<uint32_t*>(to + round_up(groups, 4)) + list.row[row];
    uint32_t z = width_value(list, row, blocks), n = bit_length(max_lanes(z)), plane = 0;
#pragma unroll
    for (uint32_t b = 0; b < 8; b++) {
      uint32_t bits = ballot((z >> b & 1) != 0);
      if (lane == b) plane = bits;
    }
    if (lane == 0) to[row] = static_cast<uint8_t>(n);
    if (lane < n) planes[lane] = plane;
  }
}

// Writes the body, which begins at a multiple of 4.
template <class K, bool R>
VELOCPY_DEVICE void write_diff(uint8_t* body, const Blocks& list, uint32_t order, uint32_t body_bytes,
                               const Differences<K, R>& differences) {
  constexpr uint32_t S = K::kSize;
  uint32_t planes = list.at[K::kBlocks - 1] + list.width[K::kBlocks - 1];
  if (thread_index() == 0) {
    uint64_t base = differences.edge.word;
    auto* to = reinterpret_cast<uint32_t*>(body);
    to[0] = static_cast<uint32_t>(base) & (S == 1 ? 0xff : S == 2 ? 0xffff : ~0u);
    if (S == 8) to[1] = static_cast<uint32_t>(base >> 32);
    to[S == 8 ? 2 : 1] = order;
  }
  write_widths(body + diff_head(S), list, blocks_of<K>(differences.words));
  uint8_t* to = body + body_bytes - K::kPlaneBytes * planes;
  differences.of_order(order, [&](uint32_t pass, Vector z) {
    uint32_t b = vector_index(pass) / K::kBlockLanes, width = list.width[b], at = list.at[b];
    if constexpr (S <= 2) {
      planes_of_words<S>(z);
#pragma unroll
      for (uint32_t r = 0; r < 4; r++) {
        uint32_t plane = plane_index<S>(r);
        if (plane < width) reinterpret_cast<uint32_t*>(to)[at + plane] = z.word[r];
      }
    } else {
      bytes_of_words<S>(z);
      uint32_t most = max_lanes(width);
#pragma unroll
      for (uint32_t part = 0; part < S; part++) {
        if (8 * part >= most) continue;
#pragma unroll
        for (uint32_t i = 0; i < 16 / S; i++) {
          uint32_t r = S == 4 ? i : part / 4 + 2 * i, j = part % 4, plane = byte_index<S>(r, j);
          if (plane < width) to[at + plane] = static_cast<uint8_t>(z.word[r] >> 8 * j);
        }
      }
    }
  });
}

// What the warps share while they read widths.
struct Rows {
  uint32_t change[kMostRows], planes[kMostRows];
};

// The sum of the values of the rows before.
VELOCPY_DEVICE uint32_t rows_before(const uint32_t* rows, uint32_t row) {
  uint32_t lane = lane_index();
  return sum_lanes(lane < row && lane < kMostRows ? rows[lane] : 0);
}

// Reads the widths of a body at a multiple of 4, places the blocks, and sets where the planes begin. Returns whether the thread found the
// body malformed; all threads return at the same barrier.
template <class K>
VELOCPY_DEVICE bool read_widths(Blocks& list, Rows& rows, uint32_t blocks, const uint8_t* body, uint32_t bytes, uint32_t& planes) {
  constexpr uint32_t kRows = K::kBlocks / 32, kEach = kRows / kCodecWarps, kHead = diff_head(K::kSize);
  uint32_t groups = (blocks + 31) / 32, begin = kHead + round_up(groups, 4), lane = lane_index();
  if (bytes < begin) return true;
  uint32_t head = lane < groups ? body[kHead + lane] : 0, all, start = sum_before(head, all);
  if (ballot(head > 8) != 0 || begin + 4 * all > bytes) return true;
  auto* from = reinterpret_cast<const uint32_t*>(body + begin);
  uint32_t width[kEach], place[kEach], sum;
#pragma unroll
  for (uint32_t i = 0; i < kEach; i++) {
    uint32_t row = warp_index() * kEach + i, n = at_lane(head, row), at = at_lane(start, row), z = 0;
#pragma unroll
    for (uint32_t b = 0; b < 8; b++) z |= b < n ? (from[at + b] >> lane & 1) << b : 0;
    uint32_t d = (z >> 1 ^ (0 - (z & 1))) & 0xff;
    width[i] = sum_before(d, sum) + d;
    if (lane == 0) rows.change[row] = sum;
  }
  sync_block();
  bool bad = false;
#pragma unroll
  for (uint32_t i = 0; i < kEach; i++) {
    uint32_t row = warp_index() * kEach + i, b = 32 * row + lane;
    width[i] = (width[i] + rows_before(rows.change, row)) & 0xff;
    if (b >= blocks) width[i] = 0;
    bad = bad || width[i] > K::kBits;
    list.width[b] = static_cast<uint8_t>(width[i]);
    place[i] = sum_before(width[i], sum);
    if (lane == 0) rows.planes[row] = sum;
  }
  sync_block();
#pragma unroll
  for (uint32_t i = 0; i < kEach; i++) {
    uint32_t row = warp_index() * kEach + i;
    list.at[32 * row + lane] = static_cast<uint16_t>(place[i] + rows_before(rows.planes, row));
  }
  planes = begin + 4 * all;
  uint32_t end = planes + K::kPlaneBytes * rows_before(rows.planes, kRows);
  return sync_any(bad || end != bytes);
}

// Reads the planes of blocks that were placed, and undoes the zig-zag.
template <class K>
VELOCPY_DEVICE void read_planes(Share& y, const Blocks& list, const uint8_t* from) {
  constexpr uint32_t S = K::kSize;
#pragma unroll
  for (uint32_t pass = 0; pass < kPasses; pass++) {
    uint32_t b = vector_index(pass) / K::kBlockLanes, width = list.width[b], at = list.at[b];
    Vector v = {};
    if constexpr (S <= 2) {
#pragma unroll
      for (uint32_t r = 0; r < 4; r++) {
        uint32_t plane = plane_index<S>(r);
        if (plane < width) v.word[r] = reinterpret_cast<const uint32_t*>(from)[at + plane];
      }
      words_of_planes<S>(v);
    } else {
      uint32_t most = max_lanes(width);
#pragma unroll
      for (uint32_t part = 0; part < S; part++) {
        if (8 * part >= most) continue;
#pragma unroll
        for (uint32_t i = 0; i < 16 / S; i++) {
          uint32_t r = S == 4 ? i : part / 4 + 2 * i, j = part % 4, plane = byte_index<S>(r, j);
          if (plane < width) v.word[r] |= static_cast<uint32_t>(from[at + plane]) << 8 * j;
        }
      }
      words_of_bytes<S>(v);
    }
    y.pass[pass] = unzigzag<S>(v);
  }
}

// Replaces the words of the chunk by their running sums, from `start` on. `totals` is shared memory for a number per warp. Has two
// barriers.
template <class K>
VELOCPY_DEVICE void sum_chunk_words(Share& y, uint64_t start, uint64_t* totals) {
  constexpr uint32_t S = K::kSize;
  uint64_t total = 0;
#pragma unroll
  for (uint32_t pass = 0; pass < kPasses; pass++) {
    uint64_t sum = sum_words<S>(y.pass[pass]), all, before;
    if constexpr (S == 8) {
      before = sum_before(sum, all);
    } else {
      uint32_t few;
      before = sum_before(static_cast<uint32_t>(sum), few);
      all = few;
    }
    y.pass[pass] = add<S>(y.pass[pass], repeated<S>(total + before));
    total += all;
  }
  sync_block();
  if (lane_index() == 0) totals[warp_index()] = total;
  sync_block();
#pragma unroll
  for (uint32_t w = 0; w < kCodecWarps - 1; w++)
    if (w < warp_index()) start += totals[w];
#pragma unroll
  for (uint32_t pass = 0; pass < kPasses; pass++) y.pass[pass] = add<S>(y.pass[pass], repeated<S>(start));
}

}  // namespace velocpy
