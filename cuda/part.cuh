// Sums over the elements of a list, in parts of one block of threads each. A block does not know how many elements there are until it runs.
#pragma once

#include "lookback.cuh"
#include "machine.cuh"

namespace velocpy {

constexpr uint32_t kOwnElements = 4;  // of a thread

// The elements of a thread in a part: those of a warp are next to each other, and so are the lanes of each of its steps.
template <uint32_t Threads>
VELOCPY_DEVICE uint64_t element_of(uint64_t part, uint32_t step) {
  uint32_t thread = thread_index(), warp = thread / 32;
  return part * Threads * kOwnElements + warp * 32 * kOwnElements + step * 32 + thread % 32;
}

// The sum of the values of the lanes up to the own one.
VELOCPY_DEVICE uint32_t sum_up_to_lane(uint32_t value) {
  uint32_t lane = thread_index() % 32;
#pragma unroll
  for (uint32_t step = 1; step < 32; step *= 2) {
    uint32_t other = at_lane(value, lane - step);
    if (lane >= step) value += other;
  }
  return value;
}

template <uint32_t Threads>
struct PartRoom {
  uint32_t sums[Threads / 32];
  uint64_t before;
};

// Gives each element the sum of the values of the elements of the part before it, and returns that of the part. Executed by the whole
// block, whose values have a sum below 2^32.
template <uint32_t Threads>
VELOCPY_DEVICE uint32_t sum_in_part(const uint32_t (&value)[kOwnElements], uint64_t (&before)[kOwnElements], PartRoom<Threads>& room) {
  uint32_t warp = thread_index() / 32, own = 0, below = 0, all = 0;
#pragma unroll
  for (uint32_t i = 0; i < kOwnElements; i++) {
    uint32_t sum = sum_up_to_lane(value[i]);
    before[i] = own + sum - value[i];
    own += at_lane(sum, 31);
  }
  sync_block();  // the room may have been in use
  if (thread_index() % 32 == 0) room.sums[warp] = own;
  sync_block();
#pragma unroll
  for (uint32_t i = 0; i < Threads / 32; i++) {
    below += i < warp ? room.sums[i] : 0;
    all += room.sums[i];
  }
#pragma unroll
  for (uint32_t i = 0; i < kOwnElements; i++) before[i] += below;
  return all;
}

// The same of all parts before too: it returns the sum up to the part's end. State is a word for each part.
template <uint32_t Threads>
VELOCPY_DEVICE uint64_t sum_before(const uint32_t (&value)[kOwnElements], uint64_t (&before)[kOwnElements], uint64_t* state,
                                   PartRoom<Threads>& room) {
  uint32_t all = sum_in_part(value, before, room);
  if (thread_index() < 32) {
    if (thread_index() == 0) publish_own(state, block_index(), all);
    uint64_t sum = sum_of_blocks(state, block_index(), all);
    if (thread_index() == 0) room.before = sum;
  }
  sync_block();
#pragma unroll
  for (uint32_t i = 0; i < kOwnElements; i++) before[i] += room.before;
  return room.before + all;
}

}  // namespace velocpy
