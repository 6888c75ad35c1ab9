// The memory of a de-duplication before its first launch, and the one buffer that it leaves: first occurrences, and metadata behind them.
#pragma once

#include "dedup_label.cuh"
#include "dedup_room_parameters.h"

namespace velocpy {
namespace dedup {

VELOCPY_DEVICE uint64_t& long_at(uint64_t array, uint64_t i) { return reinterpret_cast<uint64_t*>(array)[i]; }

VELOCPY_DEVICE void fill(const Filling& p) {
#pragma unroll 1
  for (uint64_t i = own_thread(); i < p.words; i += p.blocks * kThreads) long_at(p.at, i) = p.value;
}

// What was found: by the kernels of labels, or by those of the method Basic.
VELOCPY_DEVICE Results found(const Consolidated& p) {
  if (p.counts != 0) {
    const Counts& c = *reinterpret_cast<const Counts*>(p.counts);
    return {c.changed, c.bytes, c.first_entries, c.shift_entries, c.recorded};
  }
  Results r = {};
  if (p.launches == 0) return r;
#pragma unroll 1
  for (uint32_t i = 0; i < p.launches; i++) r.changed += long_at(p.totals, 3 * i);
  uint64_t last = p.totals + 24 * (p.launches - 1);
  r.bytes = long_at(last, 2) + (long_at(last, 0) << p.shift) - long_at(last, 1);
  return r;
}

// Copies words, and returns where the next ones go.
VELOCPY_DEVICE uint64_t append(const Consolidated& p, uint64_t to, uint64_t from, uint64_t words) {
#pragma unroll 1
  for (uint64_t i = own_thread(); i < words; i += p.blocks * kThreads) long_at(to, i) = long_at(from, i);
  return to + 8 * words;
}

VELOCPY_DEVICE void consolidate(const Consolidated& p) {
  Results r = found(p);
  uint64_t to = p.to + (r.bytes + 7) / 8 * 8;
  to = append(p, to, p.sums, p.sum_words);
  to = append(p, to, p.changed, p.changed_words);
  to = append(p, to, p.first_entries, r.first_entries);
  append(p, to, p.shift_entries, sizeof(Shift) / 8 * r.shift_entries);
  if (own_thread() != 0) return;
  if (p.recorded != 0) {
    if (p.adds != 0) long_at(p.recorded, 0) = r.recorded;
    r.recorded = long_at(p.recorded, 0);
  }
  *reinterpret_cast<Results*>(p.results) = r;
}

}  // namespace dedup
}  // namespace velocpy
