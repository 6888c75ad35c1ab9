// A store of the core, with the shim's own state.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "layout.h"
#include "loader.h"
#include "sources.h"
#include "wait.h"

namespace velocpy {

class Store {
 public:
  // config: the JSON of veloc_open.
  explicit Store(const std::string& config);
  // Closes without waiting; transfers in flight end in the background. Does nothing in a forked child.
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void close(py::handle timeout);
  // ticket 0: the whole history; history 0: the whole store. tier NONE: captured.
  void wait(const Where& where, uint64_t history, uint64_t ticket, int32_t tier, py::handle timeout);
  // budgets: the JSON of veloc_resize. Returns the new size of the named tiers, or the bytes that a trim released.
  int64_t resize(const std::string& budgets, py::handle timeout);
  py::bytes stats();
  py::bytes timeline(bool clear);
  // (flags, durable, failed) as in veloc_ticket_state.
  py::tuple ticket(uint64_t ticket);

  // Raises the error of a call that concerns checkpoints; for a deferred verification failure it adds details.
  [[noreturn]] void raise(const veloc_error& error, const Where& where) const;

  // The layout of an id, for slots of that many bytes; asks the core once. Null if no checkpoint has this layout any more.
  std::shared_ptr<const Layout> layout(uint64_t id, int64_t slot_bytes, const Where& where = {});

  uint64_t handle() const { return handle_; }
  KeptSources& sources() { return sources_; }

 private:
  uint64_t handle_ = 0;
  LayoutCache layouts_;
  KeptSources sources_;
};

// Repeats a call that fills a caller's buffer until the buffer is large enough; call gets (buffer, capacity, length, error). The GIL
// is released during each call.
template <class Call>
std::string filled(Call&& call) {
  std::string buffer(4096, '\0');
  veloc_error error;
  while (true) {
    int64_t length = 0;
    Nogil nogil;
    const int32_t status = call(buffer.data(), static_cast<int64_t>(buffer.size()), &length, &error);
    nogil.end();
    if (status < 0) raise(error, {});
    const auto needed = static_cast<size_t>(length);
    if (needed <= buffer.size()) {
      buffer.resize(needed);
      return buffer;
    }
    buffer.resize(needed + needed / 4);  // the content may grow meanwhile
  }
}

}  // namespace velocpy
