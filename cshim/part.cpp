#include "part.h"

#include <string>

#include "failure.h"

namespace velocpy {
namespace {

std::string part_of(const Label& label) { return "parts= of region " + label.spelled(); }

[[noreturn]] void refuse(py::handle index, const Label& label) {
  raise_wrong_type(part_of(label) + " has an index of type " + type_name(index) + "; it is an int, a slice or an ellipsis for each axis.");
}

// The position that an index names on an axis.
int64_t position(py::handle index, int64_t length, size_t axis, const Label& label) {
  Py_ssize_t at = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
  bool beyond = false;
  if (at == -1 && PyErr_Occurred() != nullptr) {
    const py::error_already_set error;
    if (error.matches(PyExc_TypeError)) refuse(index, label);
    if (!error.matches(PyExc_IndexError)) throw error;
    beyond = true;
  }
  if (at < 0) at += length;
  if (beyond || at < 0 || at >= length) {
    raise_invalid(part_of(label) + ": index " + py::repr(index).cast<std::string>() + " is out of range for axis " + std::to_string(axis) +
                  ", which has the length " + std::to_string(length) + ".");
  }
  return at;
}

}  // namespace

Part::Part(py::tuple indices, const RegionLayout& region, const Label& label) : region_(region) {
  const size_t axes = region.shape.size();
  size_t given = 0;
  bool ellipsis = false;
  for (py::handle index : indices) {
    if (index.ptr() == Py_Ellipsis) {
      if (ellipsis) raise_invalid(part_of(label) + " has two ellipses.");
      ellipsis = true;
      continue;
    }
    if (index.is_none()) raise_invalid(part_of(label) + " has None, which makes an axis; reshape the array of into= instead.");
    if (!PySlice_Check(index.ptr()) && (!PyIndex_Check(index.ptr()) || PyBool_Check(index.ptr()))) refuse(index, label);
    ++given;
  }
  if (given > axes) {
    raise_invalid(part_of(label) + " has " + std::to_string(given) + " indices, the region " + std::to_string(axes) + " axes.");
  }
  nbytes_ = region.itemsize;
  const auto whole = [&](size_t count) {
    for (; count > 0; --count) axes_.push_back({0, 1, region.shape[axes_.size()], true});
  };
  for (py::handle index : indices) {
    if (index.ptr() == Py_Ellipsis) {
      whole(axes - given);
      continue;
    }
    const size_t axis = axes_.size();
    const int64_t length = region.shape[axis];
    if (!PySlice_Check(index.ptr())) {
      axes_.push_back({position(index, length, axis, label), 1, 1, false});
      continue;
    }
    Py_ssize_t start;
    Py_ssize_t stop;
    Py_ssize_t step;
    if (PySlice_Unpack(index.ptr(), &start, &stop, &step) != 0) {
      py::error_already_set error;
      const std::string why = py::str(error.value()).cast<std::string>();
      if (error.matches(PyExc_ValueError)) raise_invalid(part_of(label) + ": " + why + ".");
      if (error.matches(PyExc_TypeError)) raise_wrong_type(part_of(label) + ": " + why + ".");
      throw error;
    }
    const Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(length), &start, &stop, step);
    axes_.push_back({start, step, count, true});
  }
  whole(axes - axes_.size());
  for (const Axis& axis : axes_) {
    if (axis.kept) shape_.push_back(axis.count);
    if (axis.count == 0) nbytes_ = 0;
  }
  if (nbytes_ == 0 || region.nbytes == 0) {
    nbytes_ = 0;
    return;
  }
  for (const Axis& axis : axes_) nbytes_ *= axis.count;  // no more than the region's
}

void Part::align(View* view, std::vector<int64_t>* shape, std::vector<int64_t>* strides) const {
  size_t next = 0;
  for (const Axis& axis : axes_) {
    int64_t stride = 0;
    if (axis.kept) stride = view->strides[next++];
    if (axis.step < 0 && axis.count > 1 && nbytes_ > 0) {
      view->data += stride * (axis.count - 1);
      stride = -stride;
    }
    shape->push_back(axis.count);
    strides->push_back(stride);
  }
  view->ndim = static_cast<int>(axes_.size());
  view->shape = shape->data();
  view->strides = strides->data();
  view->c_order = view->f_order = false;
}

veloc_part Part::raw(std::vector<int64_t>* numbers) const {
  veloc_part part{};
  if (nbytes_ == 0) return part;
  part.itemsize = region_.itemsize;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  for (uint8_t number : region_.order) {
    const Axis& axis = axes_[number];
    int64_t first = axis.start;
    int64_t step = axis.step;
    if (step < 0) {
      first += step * (axis.count - 1);
      step = -step;
    }
    part.offset += first * region_.strides[number];
    if (axis.count == 1) continue;
    const int64_t stride = step * region_.strides[number];
    if (!shape.empty() && strides.back() == stride * axis.count) {
      shape.back() *= axis.count;
      strides.back() = stride;
      continue;
    }
    shape.push_back(axis.count);
    strides.push_back(stride);
  }
  if (!shape.empty() && strides.back() == part.itemsize) {
    part.itemsize *= shape.back();
    shape.pop_back();
    strides.pop_back();
  }
  part.ndim = static_cast<int32_t>(shape.size());
  numbers->insert(numbers->end(), shape.begin(), shape.end());
  numbers->insert(numbers->end(), strides.begin(), strides.end());
  return part;
}

}  // namespace velocpy
