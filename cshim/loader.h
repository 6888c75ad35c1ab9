// Opens the Go core and holds the table of its functions.
#pragma once

#include <string>

#include "velocpy_abi.h"

namespace velocpy {

// One row per function of the contract. Loading the core fails if one is missing, before any call.
#define VELOC_FUNCTIONS(X) \
  X(abi_version)           \
  X(init)                  \
  X(build_info)            \
  X(in_use)                \
  X(drain_log)             \
  X(simulate)              \
  X(doctor)                \
  X(inspect)               \
  X(test_panic)            \
  X(test_corrupt)          \
  X(open)                  \
  X(close)                 \
  X(abandon)               \
  X(resize)                \
  X(stats)                 \
  X(timeline)              \
  X(history)               \
  X(history_clear)         \
  X(retain)                \
  X(reduce)                \
  X(course)                \
  X(history_len)           \
  X(keys)                  \
  X(lookup)                \
  X(describe)              \
  X(checkpoint)            \
  X(checkpoint_many)       \
  X(restore)               \
  X(drop)                  \
  X(layout)                \
  X(lease_meta)            \
  X(lease_take)            \
  X(lease_release)         \
  X(lease_use)             \
  X(lease_read)            \
  X(hint)                  \
  X(hint_clear)            \
  X(plan_next)             \
  X(plan_undo)             \
  X(prefetch)              \
  X(ticket)                \
  X(wait)                  \
  X(step)                  \
  X(cancel)

struct Core {
#define VELOC_MEMBER(name) decltype(&::veloc_##name) name = nullptr;
  VELOC_FUNCTIONS(VELOC_MEMBER)
#undef VELOC_MEMBER
};

// Opens the core at path and passes it its configuration. A second call does nothing if config is the same as before; otherwise the
// core refuses. Raises CoreUnavailable with a remedy. Needs the GIL; takes about a millisecond, once.
void load(const std::string& path, const std::string& config);

// Returns how many threads, at most count, this process may start in addition. It starts them, and they end at once. Go aborts the
// process if it cannot start a thread.
int startable_threads(int count);

bool loaded() noexcept;

// The path that the core was opened from; empty before.
const std::string& loaded_from();

// The table of functions. Raises ForkedProcessError in a child that cannot use it, and CoreUnavailable if load() was not called.
// Costs two loads, so every entry into the core begins with it.
const Core& core();

// For destructors, which must not raise, and must not enter Go where it hangs: null if the core cannot be used.
const Core* core_if_usable() noexcept;

}  // namespace velocpy
