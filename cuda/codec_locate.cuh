// Where the payloads of a container begin: sums of the lengths in its tables, each rounded up.
#pragma once

#include "codec_chunk.cuh"
#include "lookback.cuh"
#include "machine.cuh"
#include "parameters.h"

namespace velocpy {

// The payloads of kLocateChunks chunks, of which each thread has some.
struct Located {
  static constexpr uint32_t kOwn = kLocateChunks / kCodecThreads;
  uint64_t first;     // the thread's first chunk; the others are 32 apart
  uint32_t at[kOwn];  // where its payloads begin behind those of earlier warps
  uint32_t total;     // of all payloads of the warp

  // Sums up lengths from chunk `from` on.
  VELOCPY_DEVICE void sum(const Tables& t, uint64_t from, uint64_t chunks) {
    first = from + warp_index() * (32 * kOwn) + lane_index();
    total = 0;
#pragma unroll
    for (uint32_t i = 0; i < kOwn; i++) {
      uint64_t chunk = first + 32 * i;
      uint32_t size = chunk < chunks ? round_up(reinterpret_cast<const uint16_t*>(t.lengths)[chunk], 16) : 0, all;
      at[i] = total + sum_before(size, all);
      total += all;
    }
  }

  // Returns the sum of all warps, and that of the warps before. Has a barrier.
  VELOCPY_DEVICE uint32_t sum_warps(uint32_t* totals, uint32_t& before) const {
    if (lane_index() == 0) totals[warp_index()] = total;
    sync_block();
    uint32_t all = 0;
    before = 0;
#pragma unroll
    for (uint32_t w = 0; w < kCodecWarps; w++) {
      before += w < warp_index() ? totals[w] : 0;
      all += totals[w];
    }
    return all;
  }

  VELOCPY_DEVICE void write(uint64_t offsets, uint64_t begin, uint64_t chunks) const {
#pragma unroll
    for (uint32_t i = 0; i < kOwn; i++)
      if (first + 32 * i < chunks) reinterpret_cast<uint64_t*>(offsets)[first + 32 * i] = begin + at[i];
  }
};

// Each block of threads locates the payloads of kLocateChunks chunks, and finds its place by look-back.
VELOCPY_DEVICE void locate_payloads(const Locating& p) {
  VELOCPY_SHARED uint32_t totals[kCodecWarps];
  VELOCPY_SHARED uint64_t before;
  uint64_t chunks = (p.bytes - 1) / kChunkBytes + 1;
  Tables t = tables(p.container, chunks);
  Located located;
  located.sum(t, static_cast<uint64_t>(block_index()) * kLocateChunks, chunks);
  uint32_t warps_before, own = located.sum_warps(totals, warps_before);
  if (warp_index() == 0) {
    auto* state = reinterpret_cast<uint64_t*>(p.state);
    if (lane_index() == 0) publish_own(state, block_index(), own);
    uint64_t sum = sum_of_blocks(state, block_index(), own);
    if (lane_index() == 0) before = sum;
  }
  sync_block();
  located.write(p.offsets, t.payloads - p.container + before + warps_before, chunks);
}

// Each block of threads locates the payloads of one container, which is small.
VELOCPY_DEVICE void locate_containers(const Containers& p) {
  VELOCPY_SHARED uint32_t totals[kCodecWarps];
  uint32_t chunks = (p.bytes[block_index()] - 1) / kChunkBytes + 1;
  Tables t = tables(p.container[block_index()], chunks);
  uint64_t begin = t.payloads - p.container[block_index()];
#pragma unroll 1
  for (uint32_t from = 0; from < chunks; from += kLocateChunks) {
    Located located;
    located.sum(t, from, chunks);
    uint32_t warps_before, all = located.sum_warps(totals, warps_before);
    located.write(p.scratch + 8 * p.first[block_index()], begin + warps_before, chunks);
    begin += all;
    sync_block();
  }
}

}  // namespace velocpy
