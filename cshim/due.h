// A restore of a plan that a loop has taken. It is due again unless it happens.
#pragma once

#include <string>

#include "loader.h"

namespace velocpy {

struct DueRestore {
  uint64_t history = 0;
  int64_t number = 0;
  bool last = false;
  int32_t kind = VELOC_KEY_INT;
  int64_t key_number = 0;
  std::string key_text;

  // Tells the core that it did not happen. Neither raises nor waits; it fails only for a closed store, which is ignored.
  void undo(const Core& core) const noexcept {
    veloc_key key{};
    key.kind = kind;
    key.number = key_number;
    key.text = key_text.data();
    key.text_len = static_cast<int64_t>(key_text.size());
    veloc_error ignored;
    core.plan_undo(history, &key, number, last ? 1 : 0, &ignored);
  }
};

}  // namespace velocpy
