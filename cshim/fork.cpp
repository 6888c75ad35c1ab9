#include "fork.h"

#include <pthread.h>

#include <atomic>

namespace velocpy {
namespace {

std::atomic<bool> g_core_lives_here{false};
std::atomic<bool> g_forked{false};

void in_child() {
  if (g_core_lives_here.load(std::memory_order_relaxed)) g_forked.store(true, std::memory_order_relaxed);
}

}  // namespace

void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, in_child);
  (void)registered;
}

void core_lives_here() { g_core_lives_here.store(true, std::memory_order_relaxed); }

bool forked() noexcept { return g_forked.load(std::memory_order_relaxed); }

}  // namespace velocpy
