// An emulation of machine.cuh on a CPU, for tests: the threads of one block take turns; each runs until it waits.
#pragma once

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <functional>
#include <memory>
#include <vector>

#define VELOCPY_DEVICE inline
#define VELOCPY_OUTLINED static
#define VELOCPY_SHARED static
#define VELOCPY_KERNEL(threads, blocks) extern "C" void
#define VELOCPY_PARAMETER(type) const type&

namespace velocpy {

struct alignas(16) Vector {
  uint32_t word[4];
};

namespace emulated {

struct Barrier {
  uint32_t arrived = 0, passed = 0;
};

struct Thread {
  static constexpr size_t kStack = 64 << 10;
  ucontext_t begin;
  jmp_buf at;
  bool begun = false, done = false;
  std::unique_ptr<char[]> stack{new char[kStack]};
};

constexpr int kBarriers = 16;  // the limit of a block

// One block at a time. Not safe for concurrent CPU threads.
struct Block {
  std::vector<Thread> threads;
  std::function<void()> body;
  jmp_buf scheduler;
  uint32_t thread = 0, number = 0;
  uint64_t waits = 0;  // turns since any thread has made progress
  Barrier all, stages[kBarriers], warps[32];
  uint64_t lanes[32][2][32];
  bool any = false;

  static Block& running() {
    static Block block;
    return block;
  }

  static void enter() {
    Block& b = running();
    b.body();
    b.threads[b.thread].done = true;
    b.waits = 0;
    _longjmp(b.scheduler, 1);
  }

  void turn(Thread& t) {
    if (_setjmp(scheduler) != 0) return;
    if (t.begun) _longjmp(t.at, 1);
    t.begun = true;
    getcontext(&t.begin);
    t.begin.uc_stack.ss_sp = t.stack.get();
    t.begin.uc_stack.ss_size = Thread::kStack;
    t.begin.uc_link = nullptr;
    makecontext(&t.begin, enter, 0);
    setcontext(&t.begin);
  }

  void run(uint32_t block, uint32_t count) {
    number = block;
    waits = 0;
    all = {};
    for (Barrier& b : stages) b = {};
    for (Barrier& b : warps) b = {};
    if (threads.size() < count) threads.resize(count);
    for (Thread& t : threads) t.begun = t.done = false;
    for (bool left = true; left;) {
      left = false;
      for (thread = 0; thread < count; thread++) {
        if (threads[thread].done) continue;
        left = true;
        turn(threads[thread]);
      }
    }
  }

  void yield() {
    if (++waits > 4 * threads.size()) {
      fprintf(stderr, "block %u: all threads wait\n", number);
      exit(3);
    }
    if (_setjmp(threads[thread].at) == 0) _longjmp(scheduler, 1);
  }

  void announce(Barrier& b, uint32_t count) {
    if (++b.arrived < count) return;
    b.arrived = 0;
    b.passed++;
    waits = 0;
  }

  void wait(Barrier& b, uint32_t count) {
    uint32_t before = b.passed;
    announce(b, count);
    while (b.passed == before) yield();
  }
};

}  // namespace emulated

inline uint32_t thread_index() { return emulated::Block::running().thread; }
inline uint32_t block_index() { return emulated::Block::running().number; }

inline void set_bits(uint32_t* word, uint32_t bits) { *word |= bits; }

// Threads take turns, so these need not be atomic.
template <typename T>
inline T replace_if(T* word, T is, T by) {
  T was = *word;
  if (was == is) *word = by;
  return was;
}
inline void lower(uint32_t* word, uint32_t value) { *word = *word < value ? *word : value; }
inline uint32_t peek(const uint32_t* word) { return *word; }
inline void add_to(uint64_t* word, uint64_t value) { *word += value; }

inline Vector load(const Vector* p) {
  if (reinterpret_cast<uint64_t>(p) % 16 != 0) {
    fprintf(stderr, "a vector is loaded from %p\n", static_cast<const void*>(p));
    exit(3);
  }
  return *p;
}

inline void store(Vector* p, const Vector& v) {
  load(p);  // validates the address
  *p = v;
}

inline uint32_t shift_pair(uint32_t low, uint32_t high, uint32_t bits) {
  return static_cast<uint32_t>((static_cast<uint64_t>(high) << 32 | low) >> bits);
}

inline void sync_warp() {
  auto& block = emulated::Block::running();
  block.wait(block.warps[block.thread / 32], 32);
}

inline void sync_block() {
  auto& block = emulated::Block::running();
  block.wait(block.all, static_cast<uint32_t>(block.threads.size()));
}

namespace emulated {

// Calls read with the values of all lanes of the warp. The values lie in two places in turn, so that one barrier is enough: a lane
// that is ahead by one exchange writes to the other place, and it cannot be ahead by two.
template <typename F>
inline auto exchange(uint64_t value, F read) {
  auto& block = Block::running();
  uint32_t warp = block.thread / 32, lane = block.thread % 32;
  uint64_t* values = block.lanes[warp][block.warps[warp].passed % 2];
  values[lane] = value;
  sync_warp();
  return read(const_cast<const uint64_t*>(values), lane);
}

}  // namespace emulated

template <typename T>
inline T from_lane(T value, uint32_t flipped) {
  return emulated::exchange(value, [=](const uint64_t* values, uint32_t lane) { return static_cast<T>(values[lane ^ flipped]); });
}

template <typename T>
inline T at_lane(T value, uint32_t from) {
  return emulated::exchange(value, [=](const uint64_t* values, uint32_t) { return static_cast<T>(values[from % 32]); });
}

template <typename F>
inline uint32_t reduce_lanes(uint32_t value, F f) {
  return emulated::exchange(value, [=](const uint64_t* values, uint32_t) {
    auto all = static_cast<uint32_t>(values[0]);
    for (int i = 1; i < 32; i++) all = f(all, static_cast<uint32_t>(values[i]));
    return all;
  });
}

inline uint32_t max_lanes(uint32_t value) {
  return reduce_lanes(value, [](uint32_t a, uint32_t b) { return a > b ? a : b; });
}
inline uint32_t min_lanes(uint32_t value) {
  return reduce_lanes(value, [](uint32_t a, uint32_t b) { return a < b ? a : b; });
}
inline uint32_t sum_lanes(uint32_t value) {
  return reduce_lanes(value, [](uint32_t a, uint32_t b) { return a + b; });
}

inline uint32_t ballot(bool condition) {
  return emulated::exchange(condition, [](const uint64_t* values, uint32_t) {
    uint32_t all = 0;
    for (int i = 0; i < 32; i++) all |= static_cast<uint32_t>(values[i]) << i;
    return all;
  });
}

inline bool sync_any(bool condition) {
  auto& block = emulated::Block::running();
  block.any |= condition;
  sync_block();
  bool any = block.any;
  sync_block();
  block.any = false;
  sync_block();
  return any;
}

inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t nibble = selector >> 4 * i & 15, byte = bytes >> 8 * (nibble & 7) & 255;
    result |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
  }
  return result;
}
inline uint32_t count_ones(uint32_t word) { return static_cast<uint32_t>(__builtin_popcount(word)); }
inline uint32_t lowest_one(uint32_t word) { return static_cast<uint32_t>(__builtin_ctz(word)); }
inline uint32_t bit_length(uint32_t word) { return word == 0 ? 0 : 32 - static_cast<uint32_t>(__builtin_clz(word)); }

inline void increment(uint32_t* counter) { ++*counter; }
inline void raise(uint32_t* number, uint32_t value) { *number = *number > value ? *number : value; }

// Blocks run one after the other, so a word that is polled has been published already. On a GPU others may look before a block publishes a
// word for the second time; here that happens with most blocks.
inline uint64_t load_published(const uint64_t* p) { return *p; }
inline void publish(uint64_t* p, uint64_t word) {
  constexpr uint32_t kInTime = 300;
  if (*p == 0 || emulated::Block::running().number % kInTime == 0) *p = word;
}

template <int Barrier>
inline void arrive(uint32_t threads) {
  static_assert(Barrier < emulated::kBarriers);
  auto& block = emulated::Block::running();
  block.announce(block.stages[Barrier], threads);
}

template <int Barrier>
inline void await(uint32_t threads) {
  static_assert(Barrier < emulated::kBarriers);
  auto& block = emulated::Block::running();
  block.wait(block.stages[Barrier], threads);
}

}  // namespace velocpy
