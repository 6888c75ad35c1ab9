// The caller's CUDA streams: in whose order regions on a device are read and written.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "layout.h"

namespace velocpy {

namespace py = pybind11;

// Which libraries have arrays that name no stream in which device memory, without duplicates: whose current streams are concerned.
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

  // What the caller named, or, with None, the current streams of the libraries in devices; then those in arrays, which the arrays of the
  // call name themselves. See velocpy.devices.streams. Where neither devices nor arrays has any, the list is empty; a
  // stream is checked there too, as the caller may have meant a region by it.
  static Streams of(py::handle stream, const Devices& devices, const Streams& arrays);

  // The current streams of every library that is loaded, on the device of this place. Never raises: for destructors.
  static Streams current(int32_t place) noexcept;

  void add(uint64_t stream);
  void add(const Streams& others);
  bool empty() const { return handles_.empty(); }
  const uint64_t* data() const { return handles_.data(); }
  int32_t size() const { return static_cast<int32_t>(handles_.size()); }

 private:
  std::vector<uint64_t> handles_;
};

}  // namespace velocpy
