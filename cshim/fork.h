// Whether this process is a forked child of one in which the core was already running.
#pragma once

namespace velocpy {

// Registers the child handler once, when the extension is imported. Registering starts no thread.
void watch_forks();

// From now on a fork makes an unusable child. Called just before the core is opened: a child forked while it loads is as unusable as
// one forked after. A child whose parent never loaded the core may load one of its own.
void core_lives_here();

// True in a child that inherited the memory of a running core but none of its threads. Any call that needs Go's scheduler hangs
// there.
bool forked() noexcept;

}  // namespace velocpy
