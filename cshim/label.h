// What a region is called in messages.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace velocpy {

namespace py = pybind11;

// Borrowed, and made into an object or a text only where a message needs it.
struct Label {
  py::handle name;  // str; null where regions go by number
  size_t number = 0;

  py::object object() const { return name ? py::reinterpret_borrow<py::object>(name) : py::object(py::int_(number)); }
  std::string spelled() const { return py::repr(object()).cast<std::string>(); }
};

}  // namespace velocpy
