#include "streams.h"

#include <algorithm>

namespace velocpy {
namespace {

constexpr uint64_t kLegacy = 1;  // 0 is another handle of the legacy default stream

py::object devices_function(const char* name) { return py::module_::import("velocpy.devices").attr(name); }

bool finalizing() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// The current stream of torch, queried without a Python frame.
uint64_t torch_stream(int32_t place) {
  static auto* function = new py::object(devices_function("torch_stream")());
  return (*function)(place - 1).cast<uint64_t>();
}

void add_found(Streams* streams, py::handle stream, const py::list& concerned) {
  static auto* function = new py::object(devices_function("streams"));
  for (py::handle handle : (*function)(stream, concerned)) streams->add(handle.cast<uint64_t>());
}

// Null if it is not loaded.
py::handle loaded(PyObject* name) { return PyDict_GetItemWithError(PyImport_GetModuleDict(), name); }

void add_current(Streams* streams, int32_t place) {
  static PyObject* const cupy = PyUnicode_InternFromString("cupy");
  if (torch_in_use() && !loaded(cupy)) {
    streams->add(torch_stream(place));
    return;
  }
  for (py::handle handle : devices_function("current")(place)) streams->add(handle.cast<uint64_t>());
}

}  // namespace

py::handle torch_in_use() {
  static PyObject* const name = PyUnicode_InternFromString("torch");
  static PyObject* in_use = nullptr;
  const py::handle torch = loaded(name);
  if (!torch || torch.ptr() == in_use) return torch;
  if (!devices_function("torch_is_in_use")().cast<bool>()) return {};
  in_use = torch.inc_ref().ptr();  // it uses CUDA until the process ends
  return torch;
}

void Devices::add(Library library, int32_t place) {
  const Concerned one(library, place);
  if (std::find(concerned_.begin(), concerned_.end(), one) == concerned_.end()) concerned_.push_back(one);
}

Streams Streams::of(py::handle stream, const Devices& devices, const Streams& arrays) {
  Streams streams;
  if (devices.empty() && arrays.empty()) {
    if (!stream.is_none()) devices_function("named")(stream);  // raises if it is not a stream
    return streams;
  }
  py::list others;
  for (const auto& [library, place] : devices) {
    if (stream.is_none() && library == Library::torch) {
      streams.add(torch_stream(place));
    } else {
      others.append(py::make_tuple(static_cast<int>(library), place));
    }
  }
  if (!others.empty() || !stream.is_none()) add_found(&streams, stream, others);
  streams.add(arrays);  // last: the caller's own stream carries the copy
  return streams;
}

Streams Streams::reading(py::handle stream, const std::vector<int32_t>& places) {
  Streams streams;
  if (!stream.is_none()) {
    add_found(&streams, stream, py::list());
    return streams;
  }
  for (int32_t place : places) add_current(&streams, place);
  return streams;
}

Streams Streams::current(int32_t place) noexcept {
  Streams streams;
  if (finalizing()) return streams;
  py::error_scope kept;  // a destructor may run while an exception is pending
  try {
    add_current(&streams, place);
  } catch (...) {
    PyErr_Clear();
  }
  return streams;
}

void Streams::add(uint64_t stream) {
  if (stream == 0) stream = kLegacy;
  if (std::find(handles_.begin(), handles_.end(), stream) == handles_.end()) handles_.push_back(stream);
}

void Streams::add(const Streams& others) {
  for (uint64_t stream : others.handles_) add(stream);
}

}  // namespace velocpy
