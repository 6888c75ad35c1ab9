#include "view.h"

#include <pybind11/stl.h>

#include "dtype.h"
#include "exchange.h"
#include "failure.h"

namespace velocpy {
namespace {

static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "NumPy's shapes are read as the contract's");

const py::object& describe() {
  static auto* function = new py::object(py::module_::import("velocpy.arrays").attr("describe"));
  return *function;
}

}  // namespace

void View::fill(py::handle object, const Label& label, py::handle wanted) {
  look_at(object, label, wanted);
  if (data == nullptr && nbytes > 0) {
    raise_invalid("region " + label.spelled() + " has " + std::to_string(nbytes) + " bytes and no memory: it was freed, or is a fake.");
  }
}

void View::look_at(py::handle object, const Label& label, py::handle wanted) {
  const auto& numpy = py::detail::npy_api::get();
  if (Py_TYPE(object.ptr()) == numpy.PyArray_Type_) {
    fill_from_numpy(object.ptr(), label);
    return;
  }
  if (fill_from_exchange(object)) return;
  py::object described = describe()(object, label.object(), wanted);
  if (numpy.PyArray_Check_(described.ptr())) {
    fill_from_numpy(described.ptr(), label);
  } else {
    fill_from_description(described);
  }
}

void View::fill_from_numpy(PyObject* array, const Label& label) {
  const auto* proxy = py::detail::array_proxy(array);
  const Dtype& dtype = dtype_of(proxy->descr, label);
  owner = py::reinterpret_borrow<py::object>(array);
  data = proxy->data;
  ndim = proxy->nd;
  shape = reinterpret_cast<const int64_t*>(proxy->dimensions);
  strides = reinterpret_cast<const int64_t*>(proxy->strides);
  itemsize = dtype.itemsize;
  dtype_text = dtype.text;
  writable = (proxy->flags & py::detail::npy_api::NPY_ARRAY_WRITEABLE_) != 0;
  c_order = (proxy->flags & py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_) != 0;
  f_order = (proxy->flags & py::detail::npy_api::NPY_ARRAY_F_CONTIGUOUS_) != 0;
  measure();
}

void View::fill_from_description(py::tuple description) {
  if (description.size() != 10) raise_invalid("velocpy.arrays.describe gave no description.");
  own_ = std::make_unique<Own>();
  library = static_cast<Library>(description[0].cast<int>());
  own_->text = description[1].cast<std::string>();
  data = reinterpret_cast<char*>(description[2].cast<uintptr_t>());
  itemsize = description[3].cast<int64_t>();
  own_->shape = description[4].cast<std::vector<int64_t>>();
  own_->strides = description[5].cast<std::vector<int64_t>>();
  writable = description[6].cast<bool>();
  owner = description[7];
  place = description[8].cast<int32_t>();
  if (!description[9].is_none()) stream = description[9].cast<uint64_t>();
  dtype_text = own_->text;
  ndim = static_cast<int>(own_->shape.size());
  shape = own_->shape.data();
  strides = own_->strides.data();
  order();
}

bool View::fill_from_exchange(py::handle object) {
  Exchanged seen;
  if (!exchange(object, &seen)) return false;
  library = Library::torch;
  place = seen.place;
  dtype_text = seen.dtype_text;
  data = seen.data;
  itemsize = seen.itemsize;
  ndim = seen.ndim;
  shape = seen.shape;
  int64_t* in_bytes = few_strides_;
  if (ndim > kFew) {
    own_ = std::make_unique<Own>();
    own_->strides.resize(static_cast<size_t>(ndim));
    in_bytes = own_->strides.data();
  }
  int64_t dense = itemsize;
  for (int i = ndim; i-- > 0; dense *= shape[i]) in_bytes[i] = seen.strides == nullptr ? dense : seen.strides[i] * itemsize;
  strides = in_bytes;
  writable = true;
  owner = py::reinterpret_borrow<py::object>(object);
  order();
  return true;
}

void View::order() {
  measure();
  int64_t dense = itemsize;
  c_order = true;
  for (int i = ndim; i-- > 0; dense *= shape[i]) c_order = c_order && (shape[i] <= 1 || strides[i] == dense);
  c_order = c_order || nbytes == 0;
}

void View::measure() {
  nbytes = itemsize;
  for (int i = 0; i < ndim; ++i) {
    if (shape[i] < 0 || __builtin_mul_overflow(nbytes, shape[i], &nbytes)) raise_invalid("an array has an impossible shape.");
  }
}

}  // namespace velocpy
