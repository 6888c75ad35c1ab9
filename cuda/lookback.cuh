// Sums over the blocks of a launch in one pass (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back",
// NVIDIA NVR-2016-002). Each block publishes its own value, then the sum of all up to its own. A block adds the values before it,
// backwards, up to the first sum. It waits for blocks of smaller numbers only, which the device starts first.
#pragma once

#include "machine.cuh"

namespace velocpy {

constexpr uint64_t kOwn = uint64_t{1} << 62, kSum = uint64_t{2} << 62, kValueMask = kOwn - 1;
constexpr uint32_t kLooks = 8;  // loads in flight of a lane: one look is at as many blocks as some GPUs run at a time

// Publishes the block's own value, below 2^32. Executed by one thread.
VELOCPY_DEVICE void publish_own(uint64_t* state, uint32_t block, uint32_t value) {
  publish(state + block, (block == 0 ? kSum : kOwn) | value);
}

// Returns the sum of the values of all blocks before, and publishes the one up to this block. Executed by a warp.
VELOCPY_DEVICE uint64_t sum_of_blocks(uint64_t* state, uint32_t block, uint32_t value) {
  uint32_t lane = thread_index() % 32;
  uint64_t sum = 0;  // the lane's part
  bool found = block == 0;
  for (uint32_t end = block; !found;) {
    uint64_t words[kLooks];
#pragma unroll
    for (uint32_t i = 0; i < kLooks; i++) {
      // Lane n looks at the block n + 1 before the end. Before block 0 there are sums of 0.
      uint32_t back = 32 * i + lane;
      words[i] = back < end ? load_published(state + (end - 1 - back)) : kSum;
    }
#pragma unroll
    for (uint32_t i = 0; i < kLooks; i++) {
      uint32_t sums = ballot(words[i] >> 62 == 2), absent = ballot(words[i] >> 62 == 0);
      uint32_t counted = sums == 0 ? ~0u : sums ^ (sums - 1);  // up to the nearest sum
      if ((absent & counted) != 0) break;
      if ((counted >> lane & 1) != 0) sum += words[i] & kValueMask;
      found = sums != 0;
      if (found) break;
      end -= 32;
    }
  }
#pragma unroll
  for (uint32_t flip = 1; flip < 32; flip *= 2) sum += from_lane(sum, flip);
  if (lane == 0 && block > 0) publish(state + block, kSum | (sum + value));
  return sum;
}

}  // namespace velocpy
