// Arrays whose callers promised to leave them alone (copy=False), kept alive until their checkpoints are captured.
#pragma once

#include <pybind11/pybind11.h>

#include <deque>
#include <vector>

#include "loader.h"

namespace velocpy {

namespace py = pybind11;

// All calls need the GIL. The core never calls back: what has been captured meanwhile is found out on the next calls.
class KeptSources {
 public:
  void keep(uint64_t ticket, std::vector<py::object> owners);

  // Asks about the oldest few and lets go of those captured; at most `most` questions of about 100 ns.
  void drain(const Core& core, uint64_t store, size_t most);

  // After the store was closed, when nothing reads any more.
  void release_all();

  // The store went while something may still read them: alive for as long as the process.
  void leak();

  size_t size() const { return kept_.size(); }

 private:
  struct Entry {
    uint64_t ticket;
    std::vector<py::object> owners;
  };
  std::deque<Entry> kept_;
};

}  // namespace velocpy
