#include "dtype.h"

#include <unordered_map>

namespace velocpy {
namespace {

constexpr size_t kKept = 1024;  // bounds the cache of programs that create structured dtypes in a loop

std::unordered_map<PyObject*, Dtype>& seen() {
  static auto* map = new std::unordered_map<PyObject*, Dtype>;  // never destroyed: it holds Python objects
  return *map;
}

}  // namespace

const Dtype& dtype_of(PyObject* descr, const Label& label) {
  auto found = seen().find(descr);
  if (found != seen().end()) return found->second;
  auto object = py::reinterpret_borrow<py::object>(descr);
  Dtype dtype;
  dtype.text = py::module_::import("velocpy.arrays").attr("dtype_of_region")(object, label.object()).cast<std::string>();
  dtype.itemsize = py::reinterpret_borrow<py::dtype>(object).itemsize();
  dtype.descr = std::move(object);
  return seen().emplace(descr, std::move(dtype)).first->second;
}

void trim_dtypes() {
  if (seen().size() <= kKept) return;
  std::unordered_map<PyObject*, Dtype> old;
  old.swap(seen());  // destructors of dtypes may run Python
}

}  // namespace velocpy
