// torch tensors without a call into Python for each: through the table of functions that DLPack 1.3 lets a library hang on its array type.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace velocpy {

namespace py = pybind11;

// What is seen of a tensor. Borrowed: shape and strides are the tensor's.
struct Exchanged {
  char* data;
  int32_t place;
  int ndim;
  const int64_t* shape;
  const int64_t* strides;  // in elements; null: dense, the last axis fastest
  int64_t itemsize;
  std::string_view dtype_text;  // for ever
};

// Fills in what the tensor shows. False, without an error set, for everything that is to be described with care: other types, older
// torch, complex numbers and negated views (whose memory holds other numbers than they show), rare dtypes, tensors without memory.
bool exchange(py::handle object, Exchanged* seen);

// Memory to be shown as a tensor. Borrowed. Not empty.
struct Shown {
  char* data;
  int32_t place;
  const std::string* dtype_text;
  const std::vector<int64_t>* shape;
  const std::vector<int64_t>* strides;  // in bytes
};

// A tensor of that type, torch.Tensor, over memory that owner keeps; None where the table does not do it: for older torch and rare
// dtypes. The library must have been initialised for the device.
py::object tensor_over(py::handle type, py::object owner, const Shown& shown);

}  // namespace velocpy
