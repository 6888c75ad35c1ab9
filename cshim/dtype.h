// The cached properties of a NumPy dtype.
#pragma once

#include <pybind11/numpy.h>

#include <string>

#include "label.h"

namespace velocpy {

namespace py = pybind11;

struct Dtype {
  py::object descr;  // keeps the object, and so the cache's key, alive
  std::string text;  // as velocpy.arrays.dtype_text writes it
  int64_t itemsize = 0;
};

// For dtypes that cannot be stored (object), raises the typed error of velocpy.arrays, with label in its text. The reference is valid
// until trim_dtypes(). Needs the GIL. A known dtype costs one hash.
const Dtype& dtype_of(PyObject* descr, const Label& label);

// Clears the cache once it is too large; call it while no reference is held.
void trim_dtypes();

}  // namespace velocpy
