// Capsules of DLPack: arrays of other libraries in, memory of leases out.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "exchange.h"

namespace velocpy {

namespace py = pybind11;

// Takes over the tensor of a capsule that a __dlpack__ returned, so that nobody else can. Returns
//   (owner, address, device type, device, dtype text, bytes of an element, shape, strides in elements or None, writable):
// the memory is good for as long as owner lives. writable: the producer says that the memory is its own and may be written. A capsule
// without a version cannot say so.
// Raises InvalidType where the object is no capsule of a tensor, or holds one that cannot be.
py::tuple open_capsule(const py::object& capsule);

// A capsule over memory that owner keeps. Capsules without a version cannot say that they are read-only. None where DLPack has no word for
// the dtype.
py::object capsule_over(py::object owner, const Shown& shown, bool versioned, bool read_only);

}  // namespace velocpy
