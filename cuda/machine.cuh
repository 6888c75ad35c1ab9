// The operations that the kernels need of the machine, kept few so that the kernels also compile for a CPU, on which the tests run
// them.
#pragma once

#include <stdint.h>

#ifdef __CUDACC__

#define VELOCPY_DEVICE __device__ __forceinline__
#define VELOCPY_OUTLINED static __device__ __noinline__
#define VELOCPY_SHARED __shared__
#define VELOCPY_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define VELOCPY_PARAMETER(type) const __grid_constant__ type

namespace velocpy {

struct alignas(16) Vector {
  uint32_t word[4];
};

VELOCPY_DEVICE uint32_t thread_index() { return threadIdx.x; }
VELOCPY_DEVICE uint32_t block_index() { return blockIdx.x; }

// Sets bits of a word that other blocks change too.
VELOCPY_DEVICE void set_bits(uint32_t* word, uint32_t bits) { atomicOr(word, bits); }

// Operations on words in memory that other blocks change too. The first two return the word as it was.
VELOCPY_DEVICE uint32_t replace_if(uint32_t* word, uint32_t is, uint32_t by) { return atomicCAS(word, is, by); }
VELOCPY_DEVICE uint64_t replace_if(uint64_t* word, uint64_t is, uint64_t by) {
  return atomicCAS(reinterpret_cast<unsigned long long*>(word), is, by);
}
VELOCPY_DEVICE void lower(uint32_t* word, uint32_t value) { atomicMin(word, value); }
// The word as it is, or was shortly before.
VELOCPY_DEVICE uint32_t peek(const uint32_t* word) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
}
VELOCPY_DEVICE void add_to(uint64_t* word, uint64_t value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(value));
}

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

// The value of the lane whose number differs in the flipped bits. All operations between lanes are executed by whole warps.
VELOCPY_DEVICE uint64_t from_lane(uint64_t value, uint32_t flipped) { return __shfl_xor_sync(0xffffffffu, value, flipped); }
VELOCPY_DEVICE uint32_t from_lane(uint32_t value, uint32_t flipped) { return __shfl_xor_sync(0xffffffffu, value, flipped); }
// The value of the lane of that number.
VELOCPY_DEVICE uint32_t at_lane(uint32_t value, uint32_t lane) { return __shfl_sync(0xffffffffu, value, static_cast<int>(lane)); }
VELOCPY_DEVICE uint64_t at_lane(uint64_t value, uint32_t lane) { return __shfl_sync(0xffffffffu, value, static_cast<int>(lane)); }
// Bit i is the condition of lane i.
VELOCPY_DEVICE uint32_t ballot(bool condition) { return __ballot_sync(0xffffffffu, condition); }
VELOCPY_DEVICE uint32_t max_lanes(uint32_t value) { return __reduce_max_sync(0xffffffffu, value); }
VELOCPY_DEVICE uint32_t min_lanes(uint32_t value) { return __reduce_min_sync(0xffffffffu, value); }
VELOCPY_DEVICE uint32_t sum_lanes(uint32_t value) { return __reduce_add_sync(0xffffffffu, value); }

VELOCPY_DEVICE void sync_warp() { __syncwarp(); }
VELOCPY_DEVICE void sync_block() { __syncthreads(); }
// A barrier of the block that tells all threads whether the condition holds for any.
VELOCPY_DEVICE bool sync_any(bool condition) { return __syncthreads_or(condition) != 0; }

// Byte i of the result is the byte of (b, a), counted from a's lowest on, that nibble i of the selector names. Bit 3 of a nibble repeats
// the sign of that byte instead.
VELOCPY_DEVICE uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
  return result;
}
VELOCPY_DEVICE uint32_t count_ones(uint32_t word) { return static_cast<uint32_t>(__popc(static_cast<int>(word))); }
VELOCPY_DEVICE uint32_t lowest_one(uint32_t word) { return static_cast<uint32_t>(__ffs(static_cast<int>(word)) - 1); }  // word != 0
VELOCPY_DEVICE uint32_t bit_length(uint32_t word) { return 32 - static_cast<uint32_t>(__clz(static_cast<int>(word))); }

// Adds 1 to a counter in shared memory.
VELOCPY_DEVICE void increment(uint32_t* counter) { atomicAdd(counter, 1u); }
// Raises a number in shared memory to the value, if that is larger.
VELOCPY_DEVICE void raise(uint32_t* number, uint32_t value) { atomicMax(number, value); }

// Words that one block publishes and others poll. Nothing else is ordered by them.
VELOCPY_DEVICE uint64_t load_published(const uint64_t* p) {
  uint64_t word;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(p) : "memory");
  return word;
}
VELOCPY_DEVICE void publish(uint64_t* p, uint64_t word) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(word) : "memory");
}

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

// The last of so many entries that does not begin after the unit. begin_of gives where an entry begins.
template <typename Begin>
VELOCPY_DEVICE uint32_t find(uint32_t count, uint32_t unit, Begin begin_of) {
  uint32_t low = 0;
  for (uint32_t n = count; n > 1;) {
    uint32_t half = n / 2;
    low += begin_of(low + half) <= unit ? half : 0;
    n -= half;
  }
  return low;
}

VELOCPY_DEVICE uint32_t find(const uint32_t* first, uint32_t count, uint32_t unit) {
  return find(count, unit, [first](uint32_t entry) { return first[entry]; });
}

}  // namespace velocpy
