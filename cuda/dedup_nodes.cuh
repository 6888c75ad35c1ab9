// Subtrees of changed chunks, in waves by level (Tan et al., ICPP'23, algorithm 1): first those of first occurrences, then those of shifted
// duplicates, which may equal one of the former. Then entries, and new digests for the record.
#pragma once

#include "dedup_label.cuh"

namespace velocpy {
namespace dedup {

// What becomes of a node of a wave.
enum class Next : uint8_t {
  kStops,   // it has no parent in the next wave
  kPasses,  // it is the only child of its parent
  kJoins,   // its parent has this node and the next one of the wave
  kJoined,  // the node before it in the wave has joined it
};

// A wave: the nodes of a level that are first occurrences, or those that are shifted duplicates, ascending. from and to are lists of nodes.
struct Wave {
  uint32_t level;
  uint64_t from, to, count;
};

VELOCPY_DEVICE Next next_of(const Labels& p, const Wave& wave, const Node& node, uint64_t number) {
  if (node.is_top(p.shift)) return Next::kStops;
  uint32_t position = word_at(p.list, node.chunk), apart = 1u << node.level;
  if (node.index % 2 != 0) {
    bool beside = number > 0 && position - word_at(p.list, word_at(wave.from, number - 1)) == apart;
    return beside ? Next::kJoined : Next::kStops;
  }
  if (!node.has_right_neighbour(p.shift)) return Next::kPasses;
  bool beside = number + 1 < wave.count && word_at(p.list, word_at(wave.from, number + 1)) - position == apart;
  return beside ? Next::kJoins : Next::kStops;
}

// Makes the digest of the parent of two nodes next to each other, and returns it.
VELOCPY_DEVICE Vector join(const Labels& p, const Node& left) {
  Node right = left;
  right.index++;
  right.chunk += 1u << left.level;
  Vector both[2] = {digest_of(p, left), digest_of(p, right)};
  Vector* to = digest_at(p.nodes, right.chunk);
  store_digest(to, digest_of_vectors<32>(both, p.key, p.node_seed));
  return *to;
}

VELOCPY_DEVICE Node parent_of(const Node& left) { return {left.region, left.index / 2, left.level + 1, left.chunk}; }

// Notes that an entry of a level begins with a chunk.
VELOCPY_DEVICE void stop(const Labels& p, uint32_t level, uint32_t chunk) { byte_at(p.extent, chunk) = static_cast<uint8_t>(level + 1); }

// Number `number` of a wave of first occurrences. Returns whether it goes on to the next wave.
VELOCPY_DEVICE bool raise_first(const Labels& p, const Wave& wave, uint64_t number, uint32_t& joins) {
  if (number >= wave.count) return false;
  Node node = node_of(p, wave.level, word_at(wave.from, number));
  Next next = next_of(p, wave, node, number);
  if (next == Next::kStops) stop(p, wave.level, node.chunk);
  if (next == Next::kJoins) {
    join(p, node);
    byte_at(p.joined, node.chunk + (1u << wave.level)) = static_cast<uint8_t>(wave.level + 1);
    joins++;
  }
  return next == Next::kPasses || next == Next::kJoins;
}

// The node with two children that is called by the first chunk of its right child.
VELOCPY_DEVICE Node joined_node(const Labels& p, uint32_t right) {
  uint32_t level = byte_at(p.joined, right);
  return node_of(p, level, right - (1u << (level - 1)));
}

VELOCPY_DEVICE auto has_node_digest(const Labels& p, const Vector& digest, uint32_t level) {
  return
      [&p, digest, level](uint32_t right) { return byte_at(p.joined, right) == level && equal(load(digest_at(p.nodes, right)), digest); };
}

// Puts the nodes that are first occurrences with two children into the table of nodes.
VELOCPY_DEVICE void put_nodes(const Labels& p) {
#pragma unroll 1
  for (uint64_t i = own_thread(); i < counts(p).changed; i += p.blocks * kThreads) {
    uint32_t level = byte_at(p.joined, i);
    if (level == 0) continue;
    Vector digest = load(digest_at(p.nodes, i));
    put_own(p, p.node_table, digest, static_cast<uint32_t>(i), has_node_digest(p, digest, level));
  }
}

// The source of a node that would have two shifted duplicates as children: a slot of the record, or kNone. Else it may be equal to another
// node of this checkpoint: then wanted is set.
VELOCPY_DEVICE uint64_t source_of_parent(const Labels& p, const Node& parent, const Vector& digest, Node& other, bool& wanted) {
  uint64_t slot = find_recorded(p, digest, parent.bytes(p.shift));
  if (slot != kNone) return kRecorded | slot;
  uint32_t right = *find_own(p, p.node_table, digest, has_node_digest(p, digest, parent.level));
  wanted = right != kNobody;
  if (wanted) other = joined_node(p, right);
  return kNone;
}

// Whether the two children of a node are shifted duplicates of those of another node, and as long: then the bytes of the nodes are the
// same.
VELOCPY_DEVICE bool has_children_of(const Labels& p, const Node& node, const Node& other) {
  uint32_t half = 1u << (node.level - 1);
  return node.bytes(p.shift) == other.bytes(p.shift) && source_of(p, node.chunk) == (kSameCheckpoint | other.chunk) &&
         source_of(p, node.chunk + half) == (kSameCheckpoint | (other.chunk + half));
}

// Number `number` of a wave of shifted duplicates. Two of them go on as one if their parent is known as a whole. Executed by a warp.
VELOCPY_DEVICE bool raise_shift(const Labels& p, const Wave& wave, uint64_t number) {
  uint64_t source = kNone;
  Next next = Next::kJoined;
  Node node = {}, parent = {}, other = {};
  bool wanted = false;
  if (number < wave.count) {
    node = node_of(p, wave.level, word_at(wave.from, number));
    next = next_of(p, wave, node, number);
  }
  if (next == Next::kJoins) {
    parent = parent_of(node);
    source = source_of_parent(p, parent, join(p, node), other, wanted);
    if (wanted && has_children_of(p, parent, other)) {  // a warp would compare all bytes once more for each level
      source = kSameCheckpoint | other.chunk;
      wanted = false;
    }
  }
  if (agree(p, wanted, parent, other)) source = kSameCheckpoint | other.chunk;
  if (source != kNone) {
    source_of(p, node.chunk) = source;
    return true;
  }
  if (next == Next::kStops || next == Next::kJoins) stop(p, wave.level, node.chunk);
  if (next == Next::kJoins) stop(p, wave.level, node.chunk + (1u << wave.level));
  return next == Next::kPasses;
}

// Whether the elements of a thread go on, of a part of a wave.
template <bool Firsts>
VELOCPY_DEVICE void raise_part(const Labels& p, const Wave& wave, uint64_t part, uint32_t (&goes)[kOwnElements]) {
  uint32_t joins = 0;
#pragma unroll 1
  for (uint32_t i = 0; i < kOwnElements; i++) {
    uint64_t number = element_of<kThreads>(part, i);
    goes[i] = Firsts ? raise_first(p, wave, number, joins) : raise_shift(p, wave, number);
  }
  if (!Firsts) return;
  joins = sum_lanes(joins);
  if (lane_index() == 0 && joins > 0) add_to(&counts(p).joined_nodes[wave.level + 1], joins);
}

// Writes the nodes that go on.
VELOCPY_DEVICE void pass_on(const Wave& wave, uint64_t part, const uint32_t (&goes)[kOwnElements], const uint64_t (&to)[kOwnElements],
                            uint64_t first) {
#pragma unroll
  for (uint32_t i = 0; i < kOwnElements; i++)
    if (goes[i]) word_at(wave.to, first + to[i]) = word_at(wave.from, element_of<kThreads>(part, i));
}

template <bool Firsts>
VELOCPY_DEVICE uint64_t& nodes_of(const Labels& p, uint32_t level) {
  return Firsts ? counts(p).first_nodes[level] : counts(p).shift_nodes[level];
}

// A wave, by many blocks of threads: each reads a part.
template <bool Firsts>
VELOCPY_DEVICE void raise_wave(const Labels& p) {
  VELOCPY_SHARED PartRoom<kThreads> room;
  Wave wave = {p.level, p.from, p.to, nodes_of<Firsts>(p, p.level)};
  uint64_t part = block_index(), to[kOwnElements];
  if (!has_part(wave.count)) return;
  uint32_t goes[kOwnElements];
  raise_part<Firsts>(p, wave, part, goes);
  uint64_t end = sum_before(goes, to, reinterpret_cast<uint64_t*>(p.state), room);
  pass_on(wave, part, goes, to, 0);
  if (thread_index() == 0 && has_last_part(wave.count)) nodes_of<Firsts>(p, p.level + 1) = end;
}

// All waves from a level on, by one block of threads: for few nodes this takes less time than a launch for each wave.
template <bool Firsts>
VELOCPY_DEVICE void raise_waves(const Labels& p) {
  VELOCPY_SHARED PartRoom<kThreads> room;
  Wave wave = {p.level, p.from, p.to, nodes_of<Firsts>(p, p.level)};
#pragma unroll 1
  while (wave.count > 0) {
    uint64_t next = 0, to[kOwnElements];
#pragma unroll 1
    for (uint64_t part = 0; part * kPartChunks < wave.count; part++) {
      uint32_t goes[kOwnElements];
      raise_part<Firsts>(p, wave, part, goes);
      uint32_t all = sum_in_part(goes, to, room);
      pass_on(wave, part, goes, to, next);
      next += all;
    }
    if (thread_index() == 0) nodes_of<Firsts>(p, wave.level + 1) = next;
    wave = Wave{wave.level + 1, wave.to, wave.level == p.level ? p.spare : wave.from, next};
    sync_block();  // the next wave reads what other threads of the block have written
  }
}

// Numbers the chunks with which an entry begins, of first occurrences or of the others. Returns the number of all up to the part's end.
VELOCPY_DEVICE uint64_t number_entries(const Labels& p, uint8_t flag, uint32_t (&begins)[kOwnElements], uint64_t (&number)[kOwnElements],
                                       PartRoom<kThreads>& room) {
#pragma unroll
  for (uint32_t i = 0; i < kOwnElements; i++) {
    uint64_t chunk = own_element(i);
    begins[i] = chunk < counts(p).changed && byte_at(p.extent, chunk) != 0 && (byte_at(p.flags, chunk) & kFirst) == flag;
  }
  return sum_before<kThreads>(begins, number, reinterpret_cast<uint64_t*>(p.state), room);
}

VELOCPY_DEVICE uint64_t entry_of(const Labels& p, uint64_t chunk) {
  return static_cast<uint64_t>(word_at(p.list, chunk)) << 24 | (byte_at(p.extent, chunk) - 1u);
}

// Writes the entries of first occurrences, ascending.
VELOCPY_DEVICE void list_firsts(const Labels& p) {
  VELOCPY_SHARED PartRoom<kThreads> room;
  if (!has_part(counts(p).changed)) return;
  uint32_t begins[kOwnElements];
  uint64_t number[kOwnElements], end = number_entries(p, kFirst, begins, number, room);
#pragma unroll
  for (uint32_t i = 0; i < kOwnElements; i++)
    if (begins[i]) reinterpret_cast<uint64_t*>(p.first_entries)[number[i]] = entry_of(p, own_element(i));
  if (thread_index() == 0 && has_last_part(counts(p).changed)) counts(p).first_entries = end;
}

// Writes those of shifted duplicates, ascending.
VELOCPY_DEVICE void list_shifts(const Labels& p) {
  VELOCPY_SHARED PartRoom<kThreads> room;
  if (!has_part(counts(p).changed)) return;
  uint32_t begins[kOwnElements];
  uint64_t number[kOwnElements], end = number_entries(p, 0, begins, number, room);
#pragma unroll 1
  for (uint32_t i = 0; i < kOwnElements; i++) {
    if (!begins[i]) continue;
    uint64_t chunk = own_element(i), source = source_of(p, static_cast<uint32_t>(chunk)), at = source & kSourceMask;
    Shift shift = {entry_of(p, chunk), p.checkpoint, 0};
    if ((source & kRecorded) != 0) {
      Vector place = load(slot_at(p.record, at) + 1);
      shift.checkpoint = checkpoint_of(place);
      shift.offset = offset_of(place);
    } else {
      shift.offset = source_of(p, static_cast<uint32_t>(at));
    }
    reinterpret_cast<Shift*>(p.shift_entries)[number[i]] = shift;
  }
  if (thread_index() == 0 && has_last_part(counts(p).changed)) counts(p).shift_entries = end;
}

constexpr uint8_t kNewChunk = 4, kNewNode = 8;  // flags: the record gets the digest of the chunk, of the node that it calls

VELOCPY_DEVICE uint64_t recorded_before(const Labels& p) { return *reinterpret_cast<const uint64_t*>(p.before); }

// Finds the first occurrences whose digests are new to the record, among those that it has room for.
VELOCPY_DEVICE void find_new_chunks(const Labels& p) {
  Counts& c = counts(p);
  uint64_t room = p.capacity - recorded_before(p), offered = room < c.firsts ? room : c.firsts;
  uint32_t found = 0;
#pragma unroll 1
  for (uint64_t i = own_thread(); i < offered; i += p.blocks * kThreads) {
    uint32_t chunk = word_at(p.firsts, i);
    bool collided = (byte_at(p.flags, chunk) & kCollided) != 0;
    if (collided || search(p.record, p.slots, digest_of(p, node_of(p, 0, chunk))) != kNone) continue;
    byte_at(p.flags, chunk) |= kNewChunk;
    found++;
  }
  found = sum_lanes(found);
  if (lane_index() == 0 && found > 0) add_to(&c.recorded_nodes[0], found);
}

// The same of nodes with two children.
VELOCPY_DEVICE void find_new_nodes(const Labels& p) {
  VELOCPY_SHARED uint32_t found[kLevels];  // by level: few words in memory would be added to by all threads
  if (thread_index() < kLevels) found[thread_index()] = 0;
  sync_block();
#pragma unroll 1
  for (uint64_t i = own_thread(); i < counts(p).changed; i += p.blocks * kThreads) {
    uint32_t level = byte_at(p.joined, i);
    if (level == 0) continue;
    Vector digest = load(digest_at(p.nodes, i));
    bool lowest = *find_own(p, p.node_table, digest, has_node_digest(p, digest, level)) == i;
    if (!lowest || search(p.record, p.slots, digest) != kNone) continue;
    byte_at(p.flags, i) |= kNewNode;
    increment(&found[level]);
  }
  sync_block();
  uint32_t level = thread_index();
  if (level < kLevels && found[level] > 0) add_to(&counts(p).recorded_nodes[level], found[level]);
}

// How many entries the record has with the levels that it has room for, and which is the first that it has none for.
struct Recorded {
  uint64_t entries;
  uint32_t end;
};
VELOCPY_DEVICE Recorded recorded(const Labels& p) {
  const Counts& c = counts(p);
  Recorded r = {recorded_before(p) + c.recorded_nodes[0], 1};
#pragma unroll 1
  for (; r.end < kLevels && r.entries + c.joined_nodes[r.end] <= p.capacity; r.end++) r.entries += c.recorded_nodes[r.end];
  return r;
}

VELOCPY_DEVICE void record_node(const Labels& p, const Node& node, const Vector& digest) {
  uint64_t bytes = node.bytes(p.shift);
  add_entry(p.record, p.slots, digest, source_of(p, node.chunk) | bytes << 48, bytes >> 16 << 32 | p.checkpoint);
}

// Adds the new digests to the record.
VELOCPY_DEVICE void add_new(const Labels& p) {
  Recorded r = recorded(p);
#pragma unroll 1
  for (uint64_t i = own_thread(); i < counts(p).changed; i += p.blocks * kThreads) {
    auto chunk = static_cast<uint32_t>(i);
    uint8_t flags = byte_at(p.flags, i);
    if ((flags & kNewChunk) != 0) {
      Node node = node_of(p, 0, chunk);
      record_node(p, node, digest_of(p, node));
    }
    if ((flags & kNewNode) != 0 && byte_at(p.joined, i) < r.end) record_node(p, joined_node(p, chunk), load(digest_at(p.nodes, i)));
  }
  if (block_index() == 0 && thread_index() == 0) counts(p).recorded = r.entries;
}

}  // namespace dedup
}  // namespace velocpy
