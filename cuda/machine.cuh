// The operations that the kernels need of the machine, kept few so that the kernels also compile for a CPU, on which the tests run
// them.
#pragma once

#include <stdint.h>

#ifdef __CUDACC__

#define VELOCPY_DEVICE __device__ __forceinline__
#define VELOCPY_SHARED __shared__
#define VELOCPY_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define VELOCPY_PARAMETER(type) const __grid_constant__ type

namespace velocpy {

struct alignas(16) Vector {
  uint32_t word[4];
};

VELOCPY_DEVICE uint32_t thread_index() { return threadIdx.x; }
VELOCPY_DEVICE uint32_t block_index() { return blockIdx.x; }

// Loads and stores of whole vectors. Cache hints for memory that is touched once made a copy 3 % slower on an H200.
VELOCPY_DEVICE Vector load(const Vector* p) {
  uint4 v = *reinterpret_cast<const uint4*>(p);
  return {{v.x, v.y, v.z, v.w}};
}

VELOCPY_DEVICE void store(Vector* p, const Vector& v) {
  *reinterpret_cast<uint4*>(p) = make_uint4(v.word[0], v.word[1], v.word[2], v.word[3]);
}

// The low word of the pair, shifted right by bits < 32.
VELOCPY_DEVICE uint32_t shift_pair(uint32_t low, uint32_t high, uint32_t bits) { return __funnelshift_r(low, high, bits); }

VELOCPY_DEVICE uint64_t from_lane(uint64_t value, uint32_t flipped) { return __shfl_xor_sync(0xffffffffu, value, flipped); }
VELOCPY_DEVICE void sync_warp() { __syncwarp(); }
VELOCPY_DEVICE void sync_block() { __syncthreads(); }

// A named barrier. Some threads only arrive at it, and others wait: these then see the earlier writes of the arriving threads to
// shared memory. The number is a compile-time constant, because otherwise the compiler reserves all barriers for the block.
template <int Barrier>
VELOCPY_DEVICE void arrive(uint32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"n"(Barrier), "r"(threads) : "memory");
}
template <int Barrier>
VELOCPY_DEVICE void await(uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"n"(Barrier), "r"(threads) : "memory");
}

}  // namespace velocpy

#else
#include "emulated/machine.h"
#endif

namespace velocpy {

// The 16 bytes at p + shift, 0 < shift < 16. It reads only the 16-byte cells that contain them.
VELOCPY_DEVICE Vector load_shifted(const Vector* p, uint32_t shift) {
  Vector a = load(p), b = load(p + 1);
  bool pair = shift & 8, one = shift & 4;
  uint32_t w[6], r[5];
  w[0] = pair ? a.word[2] : a.word[0];
  w[1] = pair ? a.word[3] : a.word[1];
  w[2] = pair ? b.word[0] : a.word[2];
  w[3] = pair ? b.word[1] : a.word[3];
  w[4] = pair ? b.word[2] : b.word[0];
  w[5] = pair ? b.word[3] : b.word[1];
#pragma unroll
  for (int i = 0; i < 5; i++) r[i] = one ? w[i + 1] : w[i];
  Vector v;
#pragma unroll
  for (int i = 0; i < 4; i++) v.word[i] = shift_pair(r[i], r[i + 1], (shift & 3) * 8);
  return v;
}

// The last entry that does not begin after the unit.
VELOCPY_DEVICE uint32_t find(const uint32_t* first, uint32_t count, uint32_t unit) {
  uint32_t low = 0;
  for (uint32_t n = count; n > 1;) {
    uint32_t half = n / 2;
    low += first[low + half] <= unit ? half : 0;
    n -= half;
  }
  return low;
}

}  // namespace velocpy
