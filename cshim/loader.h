// Opens the Go core and holds the table of its functions.
#pragma once

#include <string>

#include "velocpy_abi.h"

namespace velocpy {

// One row per function of the contract; a missing one is found when the core is loaded, not when it is called.
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
  X(history_len)           \
  X(keys)                  \
  X(lookup)                \
  X(checkpoint)            \
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

// Opens the core at path and hands it its configuration. A second call is nothing when the core is there already and config is the
// same as before; otherwise the core refuses. Raises CoreUnavailable with a remedy. Needs the GIL; costs about a millisecond once.
void load(const std::string& path, const std::string& config);

// How many threads this process may start beside those that it has, count at most: it starts them, and they end at once. Go aborts the
// process where it may not start one.
int startable_threads(int count);

bool loaded() noexcept;

// The path the core was opened from; empty before.
const std::string& loaded_from();

// The table; raises ForkedProcessError in a child that cannot use it and CoreUnavailable when load() was not called. Costs two
// loads, so every entry into the core begins with it.
const Core& core();

// For destructors, which must neither raise nor enter Go where it hangs: null when the core is out of reach.
const Core* core_if_usable() noexcept;

}  // namespace velocpy
