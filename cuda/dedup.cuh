// De-duplication: finds the chunks of regions that have changed since the checkpoint before, and gathers them. The results are those of
// gocore/reduction/dedup with the method Basic.
#pragma once

#include <type_traits>

#include "dedup_hash.cuh"
#include "dedup_parameters.h"
#include "lookback.cuh"
#include "machine.cuh"

namespace velocpy {
namespace dedup {

// The part of a region that a block of threads reads.
struct Tile {
  const uint8_t* from;
  uint32_t bytes, region;
  uint64_t number;  // in the region

  VELOCPY_DEVICE bool whole() const { return bytes == kTileBytes; }
};

VELOCPY_DEVICE Tile tile_of(const Regions& p) {
  uint32_t region = find(p.first, p.count, block_index());
  uint64_t number = block_index() - p.first[region], left = p.bytes[region] - number * kTileBytes;
  return {reinterpret_cast<const uint8_t*>(p.from[region] + number * kTileBytes),
          left < kTileBytes ? static_cast<uint32_t>(left) : kTileBytes, region, number};
}

// Reads the tile. Vectors that are not whole count as zeros: they are in no full chunk, and in no block of the hash that is summed.
VELOCPY_DEVICE void read_tile(const Tile& tile, Vector (&held)[kUnitStripes]) {
  uint32_t at = thread_index() / 4 * kUnit + thread_index() % 4 * 16;
  if (tile.whole()) {
#pragma unroll
    for (uint32_t i = 0; i < kUnitStripes; i++) held[i] = load(reinterpret_cast<const Vector*>(tile.from + at + i * xxh3::kStripe));
  } else {
#pragma unroll
    for (uint32_t i = 0; i < kUnitStripes; i++) {
      uint32_t from = at + i * xxh3::kStripe;
      held[i] = Vector{};
      if (from + 16 <= tile.bytes) held[i] = load(reinterpret_cast<const Vector*>(tile.from + from));
    }
  }
}

// Passes the vectors of each unit between its four threads, so that thread i gets vectors 4 i to 4 i + 3; in reverse if it asks so. The
// places are such that eight neighbours use different banks, in both directions.
VELOCPY_DEVICE void turn_units(Vector (&held)[kUnitStripes], Vector* room, bool reverse) {
  uint32_t unit = lane_index() / 4, own = thread_index() % 4;
  auto place = [=](uint32_t row, uint32_t column) { return (unit / 2 * 4 + row) * 8 + (unit % 2 * 4 | (row ^ column)); };
#pragma unroll
  for (uint32_t i = 0; i < kUnitStripes; i++) store(room + place(i, own), held[i]);
  sync_warp();
#pragma unroll
  for (uint32_t i = 0; i < kUnitStripes; i++) held[i] = load(room + place(own, reverse ? kUnitStripes - 1 - i : i));
}

// A digest in memory.
VELOCPY_DEVICE Vector* digest_at(uint64_t digests, uint64_t i) { return reinterpret_cast<Vector*>(digests) + i; }

VELOCPY_DEVICE bool equal(const Vector& a, const xxh3::Hash128& b) { return low_half(a) == b.low && high_half(a) == b.high; }

VELOCPY_DEVICE void store_digest(Vector* p, const xxh3::Hash128& d) {
  store(p, {{static_cast<uint32_t>(d.low), static_cast<uint32_t>(d.low >> 32), static_cast<uint32_t>(d.high),
             static_cast<uint32_t>(d.high >> 32)}});
}

// The old digest of a chunk or block, which is loaded long before its new one is known.
struct Old {
  Vector digest;
  Vector* at;
  bool wanted, there;
};

VELOCPY_DEVICE Old old_digest(uint64_t digests, uint64_t i, bool wanted, uint64_t count) {
  Old old = {Vector{}, digest_at(digests, i), wanted, wanted && i < count};
  if (old.there) old.digest = load(old.at);
  return old;
}

// Stores the new digest where it differs, and returns whether it does.
VELOCPY_DEVICE bool replace(const Old& old, const xxh3::Hash128& d) {
  bool differs = old.wanted && !(old.there && equal(old.digest, d));
  if (differs) store_digest(old.at, d);
  return differs;
}

// Bits of every Lanes-th lane, next to each other.
template <uint32_t Lanes>
VELOCPY_DEVICE uint32_t gather_bits(uint32_t x) {
  if (Lanes == 2) {
    x = (x | x >> 1) & 0x33333333;
    x = (x | x >> 2) & 0x0f0f0f0f;
    x = (x | x >> 4) & 0x00ff00ff;
    return (x | x >> 8) & 0xffff;
  }
  if (Lanes == 4) {
    x = (x | x >> 3) & 0x03030303;
    x = (x | x >> 6) & 0x000f000f;
    return (x | x >> 12) & 0xff;
  }
  if (Lanes == 8) return (x | x >> 7 | x >> 14 | x >> 21) & 0xf;
  return x;
}

// The bits of half a word, each followed by a zero.
VELOCPY_DEVICE uint32_t spread_bits(uint32_t x) {
  x = (x | x << 8) & 0x00ff00ff;
  x = (x | x << 4) & 0x0f0f0f0f;
  x = (x | x << 2) & 0x33333333;
  return (x | x << 1) & 0x55555555;
}

// What differs between chunk lengths. Chunks up to 512 bytes are within a warp, whose digests are made in registers. Longer ones are made
// from sums of blocks of the hash, by one warp.
template <uint32_t C>
struct Leaves {
  static constexpr uint32_t kChunks = kTileBytes / C;
  static constexpr uint32_t kWords = kChunks < 32 ? 1 : kChunks / 32;
  static constexpr bool kShort = C <= 128, kSums = C >= xxh3::kBlock;
  static constexpr uint32_t kLanes = C <= 64 ? 1 : C / 64;  // of a chunk
  static constexpr uint32_t kOwn = C == 32 ? 2 : 1;         // chunks of a thread
  static constexpr uint32_t kWarpChunks = kChunks / (kThreads / 32);
  static constexpr uint32_t kRounds = kChunks * xxh3::kLanes / 32;  // of the warp that makes digests from sums
};

// The shared memory of a block of threads.
template <uint32_t C, bool Blocks>
struct ScanRoom {
  TileSums checksum;
  struct None {};
  std::conditional_t<Leaves<C>::kSums || Blocks, TileSums, None> leaf;  // of chunks or blocks of 4 KiB
  uint32_t marks[16];                                                   // of the chunks of a warp, in one word or two
  uint32_t tail;                                                        // whether the last, shorter chunk has changed
  uint32_t open;                                                        // blocks whose chunks are hashed, a bit each
  Vector turn[Leaves<C>::kShort ? kThreads * kUnitStripes : 1];
};

// The digests of the full chunks in the thread's warp, for chunks of up to 512 bytes. Returns the bits of the chunks that have changed: of
// all in lane 0, or of half of them in each of lanes 0 and 1 if there are 64.
template <uint32_t C>
VELOCPY_DEVICE uint32_t scan_warp(const Regions& p, const Old (&old)[Leaves<C>::kOwn], Vector (&held)[kUnitStripes], Vector* room) {
  using L = Leaves<C>;
  if constexpr (C == 32) {
    turn_units(held, room, false);
    uint32_t even = ballot(replace(old[0], digest_of_vectors<32>(held, p.key, p.leaf_seed)));
    uint32_t odd = ballot(replace(old[1], digest_of_vectors<32>(held + 2, p.key, p.leaf_seed)));
    uint32_t from = lane_index() % 2 * 16;
    return spread_bits(even >> from & 0xffff) | spread_bits(odd >> from & 0xffff) << 1;
  } else if constexpr (C == 64) {
    turn_units(held, room, false);
    return ballot(replace(old[0], digest_of_vectors<64>(held, p.key, p.leaf_seed)));
  } else if constexpr (C == 128) {
    turn_units(held, room, thread_index() % 2 != 0);
    return gather_bits<L::kLanes>(ballot(replace(old[0], digest_of_two(held, p.key, p.leaf_seed))));
  } else {
    return gather_bits<L::kLanes>(ballot(replace(old[0], digest_of_units<C>(held, p.leaf_seed))));
  }
}

// The digests of chunks of at least 1024 bytes. Executed by one warp. Returns the bits of the chunks that have changed.
template <uint32_t C>
VELOCPY_DEVICE uint32_t scan_sums(const Regions& p, const Tile& tile, const TileSums& sums) {
  uint32_t marks = 0;
#pragma unroll 2
  for (uint32_t i = 0; i < Leaves<C>::kRounds; i++) {
    uint32_t chunk = 4 * i + lane_index() / xxh3::kLanes;
    bool wanted = lane_index() % xxh3::kLanes == 0 && chunk < tile.bytes / C;
    Old old = old_digest(p.leaves[tile.region], tile.number * Leaves<C>::kChunks + chunk, wanted, p.comparable[tile.region]);
    marks |= gather_bits<8>(ballot(replace(old, digest_of_sums<C>(sums + chunk * (C / xxh3::kBlock), p.leaf_seed)))) << 4 * i;
  }
  return marks;
}

// The digests of the tile's blocks of 4 KiB, executed by a warp. Returns a bit for each block whose chunks must be hashed: its digest is
// new, or some of its chunks have no digest to compare with.
VELOCPY_DEVICE uint32_t scan_blocks(const Regions& p, const Tile& tile, const TileSums& sums) {
  constexpr uint32_t kBlocksOfTile = kTileBytes / kBlockBytes;
  uint32_t block = lane_index() / xxh3::kLanes, full = tile.bytes / kBlockBytes, rest = tile.bytes % kBlockBytes;
  uint64_t first = tile.number * kBlocksOfTile, count = p.old_digests[tile.region];
  bool lead = lane_index() % xxh3::kLanes == 0;
  Old old = old_digest(p.digests[tile.region], first + block, lead && block < full, count);
  bool differs = replace(old, digest_of_sums<kBlockBytes>(sums + block * (kBlockBytes / xxh3::kBlock), p.block_seed));
  if (rest != 0) {
    Old end = old_digest(p.digests[tile.region], first + full, lane_index() == full * xxh3::kLanes, count);
    differs |= replace(end, digest_of_bytes(tile.from + full * kBlockBytes, rest, p.end_seed[tile.region]));
  }
  // The last chunk of the block.
  uint32_t stop = (block + 1) * kBlockBytes < tile.bytes ? (block + 1) * kBlockBytes : tile.bytes;
  uint64_t last = (tile.number * kTileBytes + stop - 1) >> p.shift;
  bool exists = block * kBlockBytes < tile.bytes;
  return gather_bits<8>(ballot(lead && exists && (differs || last >= p.comparable[tile.region])));
}

// The digest of the region's last chunk, if it is shorter. Executed by a warp. Returns whether it has changed.
template <uint32_t C>
VELOCPY_DEVICE bool scan_tail(const Regions& p, const Tile& tile) {
  uint32_t full = tile.bytes / C, rest = tile.bytes % C;
  Old old = old_digest(p.leaves[tile.region], tile.number * Leaves<C>::kChunks + full, true, p.comparable[tile.region]);
  xxh3::Hash128 d = digest_of_bytes(tile.from + full * C, rest, p.tail_seed[tile.region]);
  bool differs = !(old.there && equal(old.digest, d));
  if (differs && lane_index() == 0) store_digest(old.at, d);
  return differs;
}

// Reads the tile once: makes the hash for the checksum, stores the digests that differ from the old ones, and marks their chunks.
template <uint32_t C, bool Blocks>
VELOCPY_DEVICE void scan(const Regions& p) {
  using L = Leaves<C>;
  alignas(16) VELOCPY_SHARED ScanRoom<C, Blocks> room;
  constexpr uint32_t kTailWarp = 2;
  Tile tile = tile_of(p);
  Vector held[kUnitStripes];
  read_tile(tile, held);
  uint32_t thread = thread_index(), warp = warp_index(), unit = thread / 4, pair = thread % 4;
  uint32_t full = tile.bytes / C;
  [[maybe_unused]] uint64_t leaf = tile.number * L::kChunks, leaves = p.leaves[tile.region], comparable = p.comparable[tile.region];

  // The old digests of the thread's own chunks. A tile that is not whole leaves some threads without one.
  Old old[L::kOwn];
  auto load_old = [&] {
#pragma unroll
    for (uint32_t i = 0; i < L::kOwn; i++) {
      uint32_t chunk = thread / L::kLanes * L::kOwn + i;
      old[i] = old_digest(leaves, leaf + chunk, thread % L::kLanes == 0 && chunk < full, comparable);
    }
  };
  if constexpr (!L::kSums && !Blocks) load_old();

  bool ends = tile.whole() && unit == kTileBytes / kUnit - 1;
  sum_blocks(held, keys_of(kUnitStripes * (unit % 4), ends, pair, p.sum_seed), room.checksum);
  if constexpr (L::kSums) sum_blocks(held, keys_of(kUnitStripes * (unit % 4), (unit + 1) % (C / kUnit) == 0, pair, p.leaf_seed), room.leaf);
  if constexpr (Blocks) {
    sum_blocks(held, keys_of(kUnitStripes * (unit % 4), (unit + 1) % (kBlockBytes / kUnit) == 0, pair, p.block_seed), room.leaf);
    sync_block();
    if (warp == 1) {
      uint32_t open = scan_blocks(p, tile, room.leaf);
      if (lane_index() == 0) room.open = open;
    }
    if (warp == 0) {
      uint64_t sum = checksum_of_sums(room.checksum, tile.from, tile.bytes, p.sum_seed);
      if (lane_index() == 0) reinterpret_cast<uint64_t*>(p.sums[tile.region])[tile.number] = sum;
    }
    sync_block();
  }
  // The block of 4 KiB in which the warp's chunks are, and that of the last chunk.
  auto open = [&](uint32_t block) { return !Blocks || (room.open >> block & 1) != 0; };
  if constexpr (!L::kSums) {
    uint32_t marks = 0;
    if (open(warp / 2)) {
      if constexpr (Blocks) {
        load_old();
        read_tile(tile, held);  // again, from a cache, since registers are few
      }
      marks = scan_warp<C>(p, old, held, room.turn + (L::kShort ? warp * 32 * kUnitStripes : 0));
    }
    if (lane_index() < L::kOwn) room.marks[warp * L::kOwn + lane_index()] = marks;
  }
  if (tile.bytes % C == 0) {
    if (thread == kTailWarp * 32) room.tail = 0;
  } else if (warp == kTailWarp) {
    bool tail = open((tile.bytes - 1) / kBlockBytes) && scan_tail<C>(p, tile);
    if (lane_index() == 0) room.tail = tail;
  }
  sync_block();

  if (!Blocks && warp == 0) {
    uint64_t sum = checksum_of_sums(room.checksum, tile.from, tile.bytes, p.sum_seed);
    if (lane_index() == 0) reinterpret_cast<uint64_t*>(p.sums[tile.region])[tile.number] = sum;
  }
  if (warp == 1) {
    uint32_t marks = 0, lane = lane_index();
    if constexpr (L::kSums) {
      marks = scan_sums<C>(p, tile, room.leaf);
    } else {
      constexpr uint32_t kBits = C == 32 ? 32 : L::kWarpChunks, kParts = 32 / kBits;
#pragma unroll
      for (uint32_t i = 0; i < kParts; i++) marks |= room.marks[(lane * kParts + i) % 16] << (i * kBits) % 32;
    }
    if (lane == full / 32) marks |= room.tail << full % 32;
    if (lane < L::kWords) reinterpret_cast<uint32_t*>(p.marks)[static_cast<uint64_t>(block_index()) * L::kWords + lane] = marks;
  }
}

// log2 of the marks of a tile.
VELOCPY_DEVICE uint32_t mark_shift(const Regions& p) { return p.shift <= 9 ? 14 - p.shift : 5; }

// Where a chunk is, by its mark.
struct Place {
  uint32_t region;
  uint64_t chunk;  // in the region
};
VELOCPY_DEVICE Place place_of(const Regions& p, uint32_t mark) {
  uint32_t shift = mark_shift(p), tile = mark >> shift, region = find(p.first, p.count, tile);
  return {region, (static_cast<uint64_t>(tile - p.first[region]) << (14 - p.shift)) + (mark & ((1u << shift) - 1))};
}

// How many bytes the region's last chunk is shorter than the others, if it is marked; else 0.
VELOCPY_DEVICE uint32_t lost_bytes(const Regions& p, uint32_t region) {
  uint32_t length = 1u << p.shift, rest = static_cast<uint32_t>(p.bytes[region]) & (length - 1);
  if (rest == 0) return 0;
  uint64_t tile = p.first[region] + (p.bytes[region] - 1) / kTileBytes;
  uint64_t mark = (tile << mark_shift(p)) + ((p.bytes[region] - 1) % kTileBytes >> p.shift);
  return (reinterpret_cast<const uint32_t*>(p.marks)[mark / 32] >> mark % 32 & 1) != 0 ? length - rest : 0;
}

// The parts of the totals that depend on short chunks. Executed by one block of threads.
VELOCPY_DEVICE void total_lost(const Regions& p, uint32_t (&lost)[kRegions]) {
  uint32_t thread = thread_index();
  if (thread < kRegions) lost[thread] = thread < p.count ? lost_bytes(p, thread) : 0;
  sync_block();
  if (thread > p.count || thread > kRegions) return;
  uint32_t sum = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < thread; i++) sum += lost[i];
  if (thread < p.count) {
    reinterpret_cast<uint32_t*>(p.lost)[thread] = sum;
    return;
  }
  auto* totals = reinterpret_cast<uint64_t*>(p.totals);
  auto* before = reinterpret_cast<const uint64_t*>(p.before);
  totals[1] = sum;
  totals[2] = before == nullptr ? 0 : before[2] + (before[0] << p.shift) - before[1];
}

// Sets the bits of a word of marks in the bitmap of all positions.
VELOCPY_DEVICE void mark_positions(const Regions& p, uint32_t number, uint32_t word) {
  Place place = place_of(p, number * 32);
  uint64_t position = p.position[place.region] + place.chunk;
  auto* at = reinterpret_cast<uint32_t*>(p.changed) + position / 32;
  uint32_t by = static_cast<uint32_t>(position % 32);
  if (word << by != 0) set_bits(at, word << by);
  if (by != 0 && word >> (32 - by) != 0) set_bits(at + 1, word >> (32 - by));
}

// Lists the changed chunks in ascending order: each block of threads those of kMarkWords words of marks.
VELOCPY_DEVICE void list_changed(const Regions& p) {
  constexpr uint32_t kWarps = kThreads / 32, kOwn = kMarkWords / kThreads;
  VELOCPY_SHARED uint32_t counts[kWarps];
  VELOCPY_SHARED uint64_t before;
  VELOCPY_SHARED uint32_t lost[kRegions];
  uint32_t lane = lane_index(), warp = warp_index(), words = p.tiles << (mark_shift(p) - 5);
  uint32_t first = block_index() * kMarkWords + warp * (32 * kOwn);
  uint32_t word[kOwn], at[kOwn], total = 0;
#pragma unroll
  for (uint32_t i = 0; i < kOwn; i++) {
    uint32_t number = first + 32 * i + lane;
    word[i] = number < words ? reinterpret_cast<const uint32_t*>(p.marks)[number] : 0;
  }
#pragma unroll
  for (uint32_t i = 0; i < kOwn; i++) {
    uint32_t count = count_ones(word[i]), sum = count;
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
      uint32_t other = at_lane(sum, lane - step);
      if (lane >= step) sum += other;
    }
    at[i] = total + sum - count;
    total += at_lane(sum, 31);
    if (p.changed != 0 && word[i] != 0) mark_positions(p, first + 32 * i + lane, word[i]);
  }
  if (lane == 0) counts[warp] = total;
  sync_block();
  uint32_t warps_before = 0, all = 0;
#pragma unroll
  for (uint32_t i = 0; i < kWarps; i++) {
    warps_before += i < warp ? counts[i] : 0;
    all += counts[i];
  }
  if (warp == 0) {
    auto* state = reinterpret_cast<uint64_t*>(p.state);
    if (lane == 0) publish_own(state, block_index(), all);
    uint64_t sum = sum_of_blocks(state, block_index(), all);
    if (lane == 0) {
      before = sum;
      if (first + kMarkWords >= words) reinterpret_cast<uint64_t*>(p.totals)[0] = sum + all;
    }
  }
  sync_block();
  auto* list = reinterpret_cast<uint32_t*>(p.list) + before + warps_before;
#pragma unroll 1
  for (uint32_t i = 0; i < kOwn; i++) {
    // A warp lists the bits of one word after the other, next to each other.
#pragma unroll 4
    for (uint32_t left = ballot(word[i] != 0); left != 0; left &= left - 1) {
      uint32_t n = lowest_one(left), bits = at_lane(word[i], n), to = at_lane(at[i], n);
      if ((bits >> lane & 1) != 0) list[to + count_ones(bits & ((1u << lane) - 1))] = (first + 32 * i + n) * 32 + lane;
    }
  }
  if (block_index() == 0) total_lost(p, lost);
}

// 16 bytes of a changed chunk, or less of a short one.
struct Piece {
  uint64_t to, from;
  uint32_t bytes;
};
VELOCPY_DEVICE Piece piece_of(const Regions& p, uint64_t data, uint64_t vector) {
  uint32_t shift = p.shift - 4;
  uint64_t entry = vector >> shift;
  uint32_t within = (static_cast<uint32_t>(vector) & ((1u << shift) - 1)) * 16;
  Place place = place_of(p, reinterpret_cast<const uint32_t*>(p.list)[entry]);
  uint64_t at = (place.chunk << p.shift) + within, bytes = p.bytes[place.region];
  uint64_t left = at < bytes ? bytes - at : 0;
  return {data + 16 * vector - reinterpret_cast<const uint32_t*>(p.lost)[place.region], p.from[place.region] + at,
          left < 16 ? static_cast<uint32_t>(left) : 16};
}

// Copies pieces, which piece_at gives by number.
template <typename Of>
VELOCPY_DEVICE void gather_pieces(uint64_t count, uint32_t blocks, Of piece_at) {
  constexpr uint32_t kAtOnce = kGatherBytes / 16 / kThreads;
#pragma unroll 1
  for (uint64_t begin = static_cast<uint64_t>(block_index()) * (kGatherBytes / 16); begin < count;
       begin += static_cast<uint64_t>(blocks) * (kGatherBytes / 16)) {
    Piece piece[kAtOnce];
    Vector held[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i++) {
      uint64_t number = begin + i * kThreads + thread_index();
      piece[i].bytes = 0;
      if (number < count) piece[i] = piece_at(number);
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i++)
      if (piece[i].bytes == 16) held[i] = load(reinterpret_cast<const Vector*>(piece[i].from));
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; i++) {
      if (piece[i].bytes == 16) {
        store_anywhere(piece[i].to, held[i]);
      } else {
#pragma unroll 1
        for (uint32_t b = 0; b < piece[i].bytes; b++)
          reinterpret_cast<uint8_t*>(piece[i].to)[b] = reinterpret_cast<const uint8_t*>(piece[i].from)[b];
      }
    }
  }
}

// Copies the listed chunks to where the data begins, without gaps.
VELOCPY_DEVICE void gather_changed(const Regions& p) {
  auto* totals = reinterpret_cast<const uint64_t*>(p.totals);
  uint64_t data = p.data + totals[2];
  gather_pieces(totals[0] << (p.shift - 4), p.blocks, [&p, data](uint64_t vector) { return piece_of(p, data, vector); });
}

}  // namespace dedup
}  // namespace velocpy
