// Arrays whose callers promised not to change them (copy=False), kept alive until their checkpoints are captured.
#pragma once

#include <pybind11/pybind11.h>

#include <deque>
#include <vector>

#include "loader.h"

namespace velocpy {

namespace py = pybind11;

// All calls need the GIL. The core never calls back: later calls find out which checkpoints have been captured.
class KeptSources {
 public:
  void keep(uint64_t ticket, std::vector<py::object> owners);

  // Queries the oldest entries, one after the other and a few at most, and releases them until one is still being read. A query costs
  // about 100 ns; for a device's pending copy it costs a driver call.
  void drain(const Core& core, uint64_t store);

  // Queries all of them.
  void drain_all(const Core& core, uint64_t store);

  // For a closed store, when no transfer reads any more.
  void release_all();

  // For a store that ends while transfers may still read: keeps the arrays alive for the rest of the process.
  void leak();

  size_t size() const { return kept_.size(); }

 private:
  struct Entry {
    uint64_t ticket;
    std::vector<py::object> owners;
  };
  enum class Oldest { released, read, unknown };
  // Moves unread entries to released, which outlives the query: destructors of arrays may run code that calls this object.
  Oldest ask(const Core& core, uint64_t store, std::vector<Entry>* released);

  std::deque<Entry> kept_;
};

}  // namespace velocpy
