// The name of a region in messages.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace velocpy {

namespace py = pybind11;

// Borrowed, and converted to an object or a text only when a message needs it.
struct Label {
  py::handle name;  // str; null if regions have numbers
  size_t number = 0;

  py::object object() const { return name ? py::reinterpret_borrow<py::object>(name) : py::object(py::int_(number)); }
  std::string spelled() const { return py::repr(object()).cast<std::string>(); }
};

}  // namespace velocpy
