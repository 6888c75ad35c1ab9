// Labels of changed chunks: first occurrences, and shifted duplicates with the places of their bytes (Tan et al., ICPP'23, algorithm 1).
// The results are those of gocore/reduction/dedup with the methods List and Tree, in an order of kernels that needs no other order of
// threads.
#pragma once

#include "dedup.cuh"
#include "dedup_label_parameters.h"
#include "dedup_record.cuh"
#include "part.cuh"

namespace velocpy {
namespace dedup {

static_assert(kPartChunks == kThreads * kOwnElements, "parts of a list");

constexpr uint32_t kNobody = ~0u;  // in a table of this checkpoint
constexpr uint8_t kFirst = 1;      // flag: a first occurrence
constexpr uint8_t kCollided = 2;   // … of bytes with the digest of other bytes that come before it
constexpr uint64_t kRecorded = uint64_t{1} << 63, kSameCheckpoint = uint64_t{1} << 62, kSourceMask = kSameCheckpoint - 1;

VELOCPY_DEVICE Counts& counts(const Labels& p) { return *reinterpret_cast<Counts*>(p.counts); }
VELOCPY_DEVICE uint8_t& byte_at(uint64_t array, uint64_t i) { return reinterpret_cast<uint8_t*>(array)[i]; }
VELOCPY_DEVICE uint32_t& word_at(uint64_t array, uint64_t i) { return reinterpret_cast<uint32_t*>(array)[i]; }

// Where the bytes of a chunk or node are, by its first chunk: of a first occurrence, its offset in the first occurrences; else a slot of
// the record with kRecorded, or a chunk that is a first occurrence with kSameCheckpoint.
VELOCPY_DEVICE uint64_t& source_of(const Labels& p, uint32_t chunk) { return reinterpret_cast<uint64_t*>(p.sources)[chunk]; }

// A node of a region: chunks from index << level on.
struct Node {
  Region region;
  uint64_t index;
  uint32_t level, chunk;  // its first chunk, by its number in the list

  VELOCPY_DEVICE uint64_t leaves(uint32_t shift) const { return ((region.bytes - 1) >> shift) + 1; }
  VELOCPY_DEVICE bool is_top(uint32_t shift) const { return leaves(shift) <= uint64_t{1} << level; }
  VELOCPY_DEVICE bool has_right_neighbour(uint32_t shift) const { return (index + 1) << level < leaves(shift); }
  VELOCPY_DEVICE uint64_t address(uint32_t shift) const { return region.from + (index << level << shift); }
  VELOCPY_DEVICE uint64_t bytes(uint32_t shift) const {
    uint64_t left = region.bytes - (index << level << shift), whole = uint64_t{1} << level << shift;
    return left < whole ? left : whole;
  }
};

VELOCPY_DEVICE Node node_of(const Labels& p, uint32_t level, uint32_t chunk) {
  auto* table = reinterpret_cast<const Region*>(p.table);
  uint32_t position = word_at(p.list, chunk);
  const Region& region = table[find(p.regions, position, [table](uint32_t i) { return table[i].position; })];
  return {region, (position - region.position) >> level, level, chunk};
}

// The digest of a node all of whose chunks have changed. One with a single child has that of the child.
VELOCPY_DEVICE Vector digest_of(const Labels& p, const Node& node) {
  uint64_t index = node.index, leaves = node.leaves(p.shift);
  for (uint32_t level = node.level; level > 0; level--, index *= 2) {
    uint32_t half = 1u << (level - 1);
    if ((2 * index + 1) * half < leaves) return load(digest_at(p.nodes, node.chunk + half));
  }
  return load(digest_at(node.region.leaves, index));
}

// The entry of the record that has the digest and the length and is not too old; or kNone.
VELOCPY_DEVICE uint64_t find_recorded(const Labels& p, const Vector& digest, uint64_t bytes) {
  uint64_t slot = search(p.record, p.slots, digest);
  if (slot == kNone) return kNone;
  Vector place = load(slot_at(p.record, slot) + 1);
  return bytes_of(place) == bytes && checkpoint_of(place) >= p.oldest ? slot : kNone;
}

// Compares bytes at two addresses that are multiples of 16. Executed by a warp.
VELOCPY_DEVICE bool same_bytes(uint64_t a, uint64_t b, uint64_t bytes) {
  bool differ = false;
#pragma unroll 1
  for (uint64_t at = 16 * lane_index(); at < bytes; at += 16 * 32) {
    if (at + 16 <= bytes) {
      differ |= !equal(load(reinterpret_cast<const Vector*>(a + at)), load(reinterpret_cast<const Vector*>(b + at)));
      continue;
    }
#pragma unroll 1
    for (; at < bytes; at++) differ |= byte_at(a, at) != byte_at(b, at);
  }
  return ballot(differ) == 0;
}

// Whether the bytes of two nodes are the same, for each lane that wants to know. Executed by a warp.
VELOCPY_DEVICE bool agree(const Labels& p, bool wanted, const Node& a, const Node& b) {
  uint64_t bytes = wanted ? a.bytes(p.shift) : 0, from = wanted ? a.address(p.shift) : 0, other = wanted ? b.address(p.shift) : 0;
  wanted = wanted && bytes == b.bytes(p.shift);
  bool result = false;
#pragma unroll 1
  for (uint32_t left = ballot(wanted); left != 0; left &= left - 1) {
    uint32_t lane = lowest_one(left);
    bool same = same_bytes(at_lane(from, lane), at_lane(other, lane), at_lane(bytes, lane));
    if (lane == lane_index()) result = same;
  }
  return result;
}

// The elements of the thread in its block's part.
VELOCPY_DEVICE uint64_t own_element(uint32_t step) { return element_of<kThreads>(block_index(), step); }

// Whether the block has a part of a list of so many elements, and whether that is the last one.
VELOCPY_DEVICE bool has_part(uint64_t count) { return static_cast<uint64_t>(block_index()) * kPartChunks < count; }
VELOCPY_DEVICE bool has_last_part(uint64_t count) { return (static_cast<uint64_t>(block_index()) + 1) * kPartChunks >= count; }

// The ends of the cut before, and of this one.
VELOCPY_DEVICE const CutEnd& begin_of(const Labels& p) { return reinterpret_cast<const CutEnd*>(p.ends)[p.cut]; }
VELOCPY_DEVICE CutEnd& end_of(const Labels& p) { return reinterpret_cast<CutEnd*>(p.ends)[p.cut + 1]; }

// Lists the positions of the changed chunks of the cut in ascending order.
VELOCPY_DEVICE void list_positions(const Labels& p) {
  VELOCPY_SHARED PartRoom<kThreads> room;
  uint64_t begin = begin_of(p).changed;
  uint32_t bits[kOwnElements], count[kOwnElements];
  uint64_t to[kOwnElements];
#pragma unroll
  for (uint32_t i = 0; i < kOwnElements; i++) {
    uint64_t at = own_element(i);
    bits[i] = at < p.words ? word_at(p.changed, p.first_word + at) : 0;
    count[i] = count_ones(bits[i]);
  }
  uint64_t end = sum_before<kThreads>(count, to, reinterpret_cast<uint64_t*>(p.state), room);
#pragma unroll 1
  for (uint32_t i = 0; i < kOwnElements; i++) {
    uint32_t first = static_cast<uint32_t>(p.first_word + own_element(i)) * 32;
#pragma unroll 1
    for (uint32_t left = bits[i]; left != 0; left &= left - 1) word_at(p.list, begin + to[i]++) = first + lowest_one(left);
  }
  if (thread_index() == 0 && has_last_part(p.words)) counts(p).changed = end_of(p).changed = begin + end;
}

// The place of a digest in a table of this checkpoint, or the first one that is free. same tells whether an element has the digest.
template <typename Same>
VELOCPY_DEVICE uint32_t* find_own(const Labels& p, uint64_t table, const Vector& digest, Same same) {
  for (uint32_t at = digest.word[0] & p.mask;; at = (at + 1) & p.mask) {
    uint32_t* slot = &word_at(table, at);
    if (*slot == kNobody || same(*slot)) return slot;
  }
}

// Puts an element into a table of this checkpoint. Of those with one digest the lowest stays. Many elements may have one digest, and their
// atomic operations on its slot would wait for each other: an element does none if the slot has had a lower one, since slots are only
// lowered.
template <typename Same>
VELOCPY_DEVICE void put_own(const Labels& p, uint64_t table, const Vector& digest, uint32_t element, Same same) {
  for (uint32_t at = digest.word[0] & p.mask;; at = (at + 1) & p.mask) {
    uint32_t* slot = &word_at(table, at);
    uint32_t held = peek(slot);
    if (held == kNobody) held = replace_if(slot, kNobody, element);
    if (held == kNobody) return;
    if (same(held)) {
      if (element < held) lower(slot, element);
      return;
    }
  }
}

VELOCPY_DEVICE auto has_digest(const Labels& p, const Vector& digest) {
  return [&p, digest](uint32_t chunk) { return equal(digest_of(p, node_of(p, 0, chunk)), digest); };
}

// Finds the chunks that the record has, and puts the others into the table of chunks.
VELOCPY_DEVICE void find_chunks(const Labels& p) {
#pragma unroll 1
  for (uint64_t i = begin_of(p).changed + own_thread(); i < end_of(p).changed; i += p.blocks * kThreads) {
    auto chunk = static_cast<uint32_t>(i);
    Node node = node_of(p, 0, chunk);
    Vector digest = digest_of(p, node);
    uint64_t slot = find_recorded(p, digest, node.bytes(p.shift));
    source_of(p, chunk) = slot == kNone ? kNone : kRecorded | slot;
    if (slot == kNone) put_own(p, p.chunk_table, digest, chunk, has_digest(p, digest));
  }
}

// Labels the chunks. One whose digest a lower one has is a shifted duplicate of that, if their bytes are the same.
VELOCPY_DEVICE void label_chunks(const Labels& p) {
  uint64_t changed = end_of(p).changed;
#pragma unroll 1
  for (uint64_t i = begin_of(p).changed + own_thread(); i - lane_index() < changed; i += p.blocks * kThreads) {
    auto chunk = static_cast<uint32_t>(i);
    bool own = i < changed && source_of(p, chunk) == kNone, wanted = false;
    Node node = {}, lowest = {};
    if (own) {
      node = node_of(p, 0, chunk);
      Vector digest = digest_of(p, node);
      lowest = node_of(p, 0, *find_own(p, p.chunk_table, digest, has_digest(p, digest)));
      wanted = lowest.chunk != chunk;
    }
    bool same = agree(p, wanted, node, lowest);
    if (own && same) source_of(p, chunk) = kSameCheckpoint | lowest.chunk;
    if (i >= changed) continue;
    byte_at(p.flags, i) = own && !same ? kFirst | (wanted ? kCollided : 0) : 0;
    byte_at(p.extent, i) = p.tree ? 0 : 1;
    byte_at(p.joined, i) = 0;
  }
}

// Gives first occurrences their offsets, and lists them and the shifted duplicates.
VELOCPY_DEVICE void place_chunks(const Labels& p) {
  VELOCPY_SHARED PartRoom<kThreads> room;
  const CutEnd begin = begin_of(p);
  uint64_t changed = end_of(p).changed, number[kOwnElements], offset[kOwnElements];
  uint32_t first[kOwnElements], bytes[kOwnElements];
  auto* state = reinterpret_cast<uint64_t*>(p.state);
  uint64_t parts = (changed - begin.changed + kPartChunks - 1) / kPartChunks;
  if (block_index() >= parts) {
    if (parts == 0 && block_index() == 0 && thread_index() == 0) end_of(p) = begin;
    return;
  }
#pragma unroll
  for (uint32_t i = 0; i < kOwnElements; i++) {
    uint64_t chunk = begin.changed + own_element(i);
    first[i] = chunk < changed && (byte_at(p.flags, chunk) & kFirst) != 0;
    bytes[i] = first[i] ? static_cast<uint32_t>(node_of(p, 0, static_cast<uint32_t>(chunk)).bytes(p.shift)) : 0;
  }
  uint64_t firsts = begin.firsts + sum_before<kThreads>(first, number, state, room);
  uint64_t stored = begin.bytes + sum_before<kThreads>(bytes, offset, state + parts, room);
#pragma unroll
  for (uint32_t i = 0; i < kOwnElements; i++) {
    uint64_t chunk = begin.changed + own_element(i), before = begin.firsts + number[i];
    if (chunk >= changed) continue;
    if (first[i]) source_of(p, static_cast<uint32_t>(chunk)) = begin.bytes + offset[i];
    word_at(first[i] ? p.firsts : p.shifts, first[i] ? before : chunk - before) = static_cast<uint32_t>(chunk);
  }
  if (thread_index() == 0 && block_index() == parts - 1) {
    Counts& c = counts(p);
    c.firsts = c.first_nodes[0] = end_of(p).firsts = firsts;
    c.bytes = end_of(p).bytes = stored;
    c.shift_nodes[0] = changed - firsts;
  }
}

// 16 bytes of a first occurrence, or less of a short one.
VELOCPY_DEVICE Piece piece_of(const Labels& p, uint64_t vector) {
  uint32_t shift = p.shift - 4, within = (static_cast<uint32_t>(vector) & ((1u << shift) - 1)) * 16;
  uint32_t chunk = word_at(p.firsts, begin_of(p).firsts + (vector >> shift));
  Node node = node_of(p, 0, chunk);
  uint64_t bytes = node.bytes(p.shift), left = within < bytes ? bytes - within : 0;
  return {p.data + source_of(p, chunk) + within, node.address(p.shift) + within, left < 16 ? static_cast<uint32_t>(left) : 16};
}

VELOCPY_DEVICE void gather_firsts(const Labels& p) {
  uint64_t firsts = end_of(p).firsts - begin_of(p).firsts;
  gather_pieces(firsts << (p.shift - 4), p.blocks, [&p](uint64_t vector) { return piece_of(p, vector); });
}

}  // namespace dedup
}  // namespace velocpy
