// The record: where bytes lie that earlier checkpoints of a lineage have stored, by digest. The entries are those of
// gocore/reduction/record; their places in the table are not. No kernel that searches the table runs beside one that adds to it.
#pragma once

#include "dedup_label_parameters.h"
#include "machine.cuh"
#include "sums.cuh"
#include "xxh3_seeded.h"

namespace velocpy {
namespace dedup {

constexpr uint64_t kNone = ~uint64_t{0};

// The thread's number in a launch.
VELOCPY_DEVICE uint64_t own_thread() { return static_cast<uint64_t>(block_index()) * kThreads + thread_index(); }

VELOCPY_DEVICE bool equal(const Vector& a, const Vector& b) { return low_half(a) == low_half(b) && high_half(a) == high_half(b); }

VELOCPY_DEVICE uint64_t home_of(const Vector& digest, uint64_t slots) {
  uint64_t high = high_half(digest);
  return xxh3::high_product((low_half(digest) ^ (high << 32 | high >> 32)) * 0x9e3779b97f4a7c15u, slots);
}

VELOCPY_DEVICE uint64_t next_slot(uint64_t at, uint64_t slots) { return at + 1 == slots ? 0 : at + 1; }

// A slot as two vectors: the digest, and the place of its bytes.
VELOCPY_DEVICE Vector* slot_at(uint64_t record, uint64_t at) { return reinterpret_cast<Vector*>(record) + 2 * at; }
VELOCPY_DEVICE bool is_empty(const Vector& place) { return high_half(place) == kNone; }
VELOCPY_DEVICE uint32_t checkpoint_of(const Vector& place) { return static_cast<uint32_t>(high_half(place)); }
VELOCPY_DEVICE uint64_t offset_of(const Vector& place) { return low_half(place) & ((uint64_t{1} << 48) - 1); }
VELOCPY_DEVICE uint64_t bytes_of(const Vector& place) { return low_half(place) >> 48 | high_half(place) >> 32 << 16; }

// The slot that has the digest, or kNone. There is an empty slot.
VELOCPY_DEVICE uint64_t search(uint64_t record, uint64_t slots, const Vector& digest) {
  if (slots == 0) return kNone;
  for (uint64_t at = home_of(digest, slots);; at = next_slot(at, slots)) {
    const Vector* slot = slot_at(record, at);
    if (is_empty(load(slot + 1))) return kNone;
    if (equal(load(slot), digest)) return at;
  }
}

// Adds an entry, which no other thread adds and the record does not have.
VELOCPY_DEVICE void add_entry(uint64_t record, uint64_t slots, const Vector& digest, uint64_t low, uint64_t high) {
  for (uint64_t at = home_of(digest, slots);; at = next_slot(at, slots)) {
    Vector* slot = slot_at(record, at);
    auto* place = reinterpret_cast<uint64_t*>(slot + 1);
    if (replace_if(place + 1, kNone, high) != kNone) continue;
    place[0] = low;
    store(slot, digest);
    return;
  }
}

VELOCPY_DEVICE bool is_forgotten(const Sweep& p, uint32_t checkpoint) {
  if (checkpoint < p.oldest) return true;
  auto* forgotten = reinterpret_cast<const uint32_t*>(p.forgotten);
  return p.count > 0 && forgotten[find(forgotten, p.count, checkpoint)] == checkpoint;
}

// Copies the entries that are not forgotten.
VELOCPY_DEVICE void sweep(const Sweep& p) {
  uint64_t kept = 0;
#pragma unroll 1
  for (uint64_t at = own_thread(); at < p.slots; at += p.blocks * kThreads) {
    Vector place = load(slot_at(p.record, at) + 1);
    if (is_empty(place) || is_forgotten(p, checkpoint_of(place))) continue;
    add_entry(p.to, p.to_slots, load(slot_at(p.record, at)), low_half(place), high_half(place));
    kept++;
  }
  if (kept > 0) add_to(reinterpret_cast<uint64_t*>(p.recorded), kept);
}

}  // namespace dedup
}  // namespace velocpy
