// The caller's CUDA streams: regions on a device are read and written in their order.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "layout.h"

namespace velocpy {

namespace py = pybind11;

// The module of torch if it uses CUDA in this process, else null. Once it is known to, no Python code runs.
py::handle torch_in_use();

// The (library, place) pairs whose current streams matter, without duplicates: arrays on a device that name no stream.
class Devices {
 public:
  using Concerned = std::pair<Library, int32_t>;  // and a place

  void add(Library library, int32_t place);
  bool empty() const { return concerned_.empty(); }
  std::vector<Concerned>::const_iterator begin() const { return concerned_.begin(); }
  std::vector<Concerned>::const_iterator end() const { return concerned_.end(); }

 private:
  std::vector<Concerned> concerned_;
};

// Handles of streams, without duplicates.
class Streams {
 public:
  Streams() = default;

  // The named stream or, with None, the current streams of the libraries in devices; then those in arrays, which the arrays of the
  // call name themselves. See velocpy.devices.streams. If both devices and arrays are empty, the list is empty. A named stream is
  // validated even then, as the caller may have meant a region by it.
  static Streams of(py::handle stream, const Devices& devices, const Streams& arrays);

  // Those that will read a lease, should it lie on one of these devices: the named stream or, with None, the current streams there.
  static Streams reading(py::handle stream, const std::vector<int32_t>& places);

  // The current streams of every loaded library, on the device of this place. Never raises: for destructors.
  static Streams current(int32_t place) noexcept;

  void add(uint64_t stream);
  void add(const Streams& others);
  bool empty() const { return handles_.empty(); }
  const std::vector<uint64_t>& handles() const { return handles_; }
  const uint64_t* data() const { return handles_.data(); }
  int32_t size() const { return static_cast<int32_t>(handles_.size()); }

 private:
  std::vector<uint64_t> handles_;
};

}  // namespace velocpy
