// One array of the caller, of any library, as the shim sees it.
#pragma once

#include <pybind11/numpy.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "label.h"
#include "layout.h"

namespace velocpy {

// Borrowed from the caller's object, which owner keeps alive. Shape, strides and text point into the object or into the View, so a
// View is filled in place and neither moved nor copied.
struct View {
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  // Reads a NumPy array directly, and any other object through velocpy.arrays.describe, which raises the typed errors with label in
  // their text. wanted is the caller's stream=, which is passed to arrays that take a consumer stream. Afterwards every view with
  // bytes has memory.
  void fill(py::handle object, const Label& label, py::handle wanted);

  py::object owner;
  char* data = nullptr;
  int ndim = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;  // bytes
  int64_t itemsize = 0;
  int64_t nbytes = 0;
  Library library = Library::numpy;
  int32_t place = VELOC_PLACE_HOST;
  uint64_t stream = 0;  // the stream in whose order the memory is used, if the object names one; 0: none
  std::string_view dtype_text;
  bool writable = false;
  bool c_order = false;  // contiguous, last axis fastest
  bool f_order = false;  // contiguous, first axis fastest

 private:
  void look_at(py::handle object, const Label& label, py::handle wanted);
  void fill_from_numpy(PyObject* array, const Label& label);
  bool fill_from_exchange(py::handle object);
  void fill_from_description(py::tuple description);
  void order();
  void measure();

  // Storage for properties that the object has no memory for.
  struct Own {
    std::string text;
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
  };
  static constexpr int kFew = 8;

  int64_t few_strides_[kFew];
  std::unique_ptr<Own> own_;
};

}  // namespace velocpy
