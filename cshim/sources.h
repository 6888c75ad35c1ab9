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

  // Asks about the oldest, one after the other, and lets go of them, until one is still read; asks about a few at most. A question
  // costs about 100 ns, and one about a device's copy that has yet to happen a call of its driver.
  void drain(const Core& core, uint64_t store);

  // Asks about all of them.
  void drain_all(const Core& core, uint64_t store);

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
  enum class Oldest { released, read, unknown };
  // What nobody reads goes into released, which outlives the asking: destructors of arrays may run code that comes back here.
  Oldest ask(const Core& core, uint64_t store, std::vector<Entry>* released);

  std::deque<Entry> kept_;
};

}  // namespace velocpy
