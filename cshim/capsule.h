// Capsules of DLPack: importing arrays of other libraries, exporting memory of leases.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "exchange.h"

namespace velocpy {

namespace py = pybind11;

// Takes ownership of the tensor in a capsule that a __dlpack__ returned, so that no other consumer can. Returns
//   (owner, address, device type, device, dtype text, bytes of an element, shape, strides in elements or None, writable).
// The memory is valid while owner lives. writable: the producer declares that the memory is its own and may be written. A capsule
// without a version cannot declare that. Raises InvalidType if the object is not a capsule of a tensor, or has an invalid one.
py::tuple open_capsule(const py::object& capsule);

// A capsule over memory that owner keeps alive. A capsule without a version cannot be marked read-only. None if DLPack has no code
// for the dtype.
py::object capsule_over(py::object owner, const Shown& shown, bool versioned, bool read_only);

}  // namespace velocpy
