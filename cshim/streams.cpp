#include "streams.h"

#include <algorithm>

namespace velocpy {
namespace {

py::object devices_function(const char* name) { return py::module_::import("velocpy.devices").attr(name); }

bool finalizing() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

}  // namespace

Streams Streams::of(py::handle stream, const std::set<std::pair<int, int32_t>>& devices) {
  Streams streams;
  if (devices.empty()) return streams;
  static auto* function = new py::object(devices_function("streams"));
  py::list concerned;
  for (const auto& [library, place] : devices) concerned.append(py::make_tuple(library, place));
  for (py::handle handle : (*function)(stream, concerned)) streams.add(handle.cast<uint64_t>());
  return streams;
}

Streams Streams::current(int32_t place) noexcept {
  Streams streams;
  if (finalizing()) return streams;
  py::error_scope kept;  // a destructor may run while an exception is under way
  try {
    for (py::handle handle : devices_function("current")(place)) streams.add(handle.cast<uint64_t>());
  } catch (...) {
    PyErr_Clear();
  }
  return streams;
}

void Streams::add(uint64_t stream) {
  if (std::find(handles_.begin(), handles_.end(), stream) == handles_.end()) handles_.push_back(stream);
}

void Streams::add(const Streams& others) {
  for (uint64_t stream : others.handles_) add(stream);
}

}  // namespace velocpy
