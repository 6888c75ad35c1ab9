// Walks over trees whose nodes are of the usual types, as most states of models are: dicts, lists, tuples, plain values, and arrays of
// NumPy and torch. velocpy.tree and velocpy.training.encoding walk over all others, and tell what is wrong with a tree.
#pragma once

#include <pybind11/pybind11.h>

namespace velocpy {

namespace py = pybind11;

// (regions, structure, values), as velocpy.tree.flatten returns them. None if a node is of another type, if a name has to be written with
// escapes, or if the tree is one that has to be refused.
py::object flatten(py::handle tree);

// Whether velocpy.training.encoding writes a state as it is. False also if it has to find out by itself.
bool is_written_as_it_is(py::handle state);

}  // namespace velocpy
