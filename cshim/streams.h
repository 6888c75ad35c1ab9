// The caller's CUDA streams: in whose order regions on a device are read and written.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace velocpy {

namespace py = pybind11;

// Handles of streams, without duplicates.
class Streams {
 public:
  Streams() = default;

  // stream: None for the current streams of the libraries whose arrays are concerned, or what the caller named: see
  // velocpy.devices.streams. devices: (library, place) of the arrays; without any the list is empty and Python is not asked.
  static Streams of(py::handle stream, const std::set<std::pair<int, int32_t>>& devices);

  // The current streams of every library that is loaded, on the device of this place. Never raises: for destructors.
  static Streams current(int32_t place) noexcept;

  void add(uint64_t stream);
  void add(const Streams& others);
  const uint64_t* data() const { return handles_.data(); }
  int32_t size() const { return static_cast<int32_t>(handles_.size()); }

 private:
  std::vector<uint64_t> handles_;
};

}  // namespace velocpy
