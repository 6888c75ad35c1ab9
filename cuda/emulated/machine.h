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
  uint64_t lanes[32][32];

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

inline uint64_t from_lane(uint64_t value, uint32_t flipped) {
  auto& block = emulated::Block::running();
  uint32_t warp = block.thread / 32, lane = block.thread % 32;
  block.lanes[warp][lane] = value;
  sync_warp();
  uint64_t other = block.lanes[warp][lane ^ flipped];
  sync_warp();
  return other;
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
