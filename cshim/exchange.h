// Access to torch tensors without a Python call for each, through the table of functions that a library may attach to its array type
// by DLPack 1.3.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace velocpy {

namespace py = pybind11;

// A tensor as the table describes it. Borrowed: the tensor owns shape and strides.
struct Exchanged {
  char* data;
  int32_t place;
  int ndim;
  const int64_t* shape;
  const int64_t* strides;  // in elements; null: dense, last axis fastest
  int64_t itemsize;
  std::string_view dtype_text;  // static
};

// Describes a tensor. Returns false, without an error set, for all objects that need the slow path: other types, older torch, complex
// numbers and negated views (whose memory differs from their values), rare dtypes, tensors without memory.
bool exchange(py::handle object, Exchanged* seen);

// Whether this is of one of torch's own types: a tensor, or a parameter. False without such a table.
bool is_torch(py::handle object);
// Whether it is a tensor and no parameter.
bool is_plain_tensor(py::handle object);

// Memory to wrap as a tensor. Borrowed. Not empty.
struct Shown {
  char* data;
  int32_t place;
  const std::string* dtype_text;
  const std::vector<int64_t>* shape;
  const std::vector<int64_t>* strides;  // in bytes
};

// A tensor of that type over memory that owner keeps alive; None if the table cannot make one: older torch, rare dtypes. The library
// must have been initialised for the device.
py::object tensor_over(py::handle type, py::object owner, const Shown& shown);

}  // namespace velocpy
