// What the shim remembers of a NumPy dtype.
#pragma once

#include <pybind11/numpy.h>

#include <string>

#include "label.h"

namespace velocpy {

namespace py = pybind11;

struct Dtype {
  py::object descr;  // keeps the identity that the cache goes by
  std::string text;  // as velocpy.arrays.dtype_text writes it
  int64_t itemsize = 0;
};

// Raises the typed error of velocpy.arrays, which names label, for dtypes that cannot be stored (object). The reference is good until
// trim_dtypes(). Needs the GIL. A dtype seen before costs one hash.
const Dtype& dtype_of(PyObject* descr, const Label& label);

// Forgets everything once too many dtypes were seen; call it where no reference is held.
void trim_dtypes();

}  // namespace velocpy
