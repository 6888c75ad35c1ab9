// Keys of checkpoints between Python and the core.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "velocpy_abi.h"

namespace velocpy {

namespace py = pybind11;

// A key in the core's form. Its text points into the Python string or into own; the Key must outlive the call and must not be moved.
class Key {
 public:
  // An int, any object with __index__ that fits 64 bits, or a str. None if the store may choose. Raises InvalidType, InvalidArgument.
  explicit Key(py::handle key, bool may_be_none = false);
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;

  const veloc_key* get() const { return &raw_; }
  bool chosen_by_store() const { return raw_.kind == VELOC_KEY_AUTO; }

 private:
  veloc_key raw_{};
  std::string own_;
};

// The bytes of a str as UTF-8, with lone surrogates as surrogatepass writes them; own holds them if the str cannot.
void utf8(py::handle text, std::string* own, const char** data, int64_t* length);

// The inverse of utf8.
py::object text_from(const char* data, size_t length);

}  // namespace velocpy
