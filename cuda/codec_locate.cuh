// Where the payloads of a container begin: sums of the lengths in its tables, each rounded up.
#pragma once

#include "codec_chunk.cuh"
#include "lookback.cuh"
#include "machine.cuh"
#include "parameters.h"

namespace velocpy {

// Each block of threads locates the payloads of kLocateChunks chunks, and finds its place by look-back.
VELOCPY_DEVICE void locate_payloads(const Locating& p) {
  constexpr uint32_t kOwn = kLocateChunks / kCodecThreads;
  VELOCPY_SHARED uint32_t totals[kCodecWarps];
  VELOCPY_SHARED uint64_t before;
  uint64_t chunks = (p.bytes - 1) / kChunkBytes + 1;
  Tables t = tables(p.container, chunks);
  uint64_t first = static_cast<uint64_t>(block_index()) * kLocateChunks + warp_index() * (32 * kOwn) + lane_index();
  uint32_t at[kOwn], total = 0;
#pragma unroll
  for (uint32_t i = 0; i < kOwn; i++) {
    uint64_t chunk = first + 32 * i;
    uint32_t size = chunk < chunks ? round_up(reinterpret_cast<const uint16_t*>(t.lengths)[chunk], 16) : 0, all;
    at[i] = total + sum_before(size, all);
    total += all;
  }
  if (lane_index() == 0) totals[warp_index()] = total;
  sync_block();
  uint32_t warps_before = 0, own = 0;
#pragma unroll
  for (uint32_t w = 0; w < kCodecWarps; w++) {
    warps_before += w < warp_index() ? totals[w] : 0;
    own += totals[w];
  }
  if (warp_index() == 0) {
    auto* state = reinterpret_cast<uint64_t*>(p.state);
    if (lane_index() == 0) publish_own(state, block_index(), own);
    uint64_t sum = sum_of_blocks(state, block_index(), own);
    if (lane_index() == 0) before = sum;
  }
  sync_block();
  uint64_t begin = t.payloads - p.container + before + warps_before;
#pragma unroll
  for (uint32_t i = 0; i < kOwn; i++)
    if (first + 32 * i < chunks) reinterpret_cast<uint64_t*>(p.offsets)[first + 32 * i] = begin + at[i];
}

}  // namespace velocpy
