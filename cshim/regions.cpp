#include "regions.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "dtype.h"
#include "failure.h"
#include "key.h"
#include "overlap.h"
#include "part.h"
#include "probe.h"

namespace velocpy {
namespace {

constexpr int kMaxDims = 64;                           // NumPy's limit
constexpr int64_t kMostEmpty = int64_t{1} << 24;       // the core's limit for the number of elements without bytes
constexpr int64_t kLargestElement = int64_t{1} << 30;  // the contract's element size has 32 bits

char g_nothing[64];  // target of regions without bytes

struct Order {
  AxisOrder kind;
  uint8_t axes[kMaxDims];  // unset if the memory is dense in C order
};

// The order of the axes in memory, so that a capture of dense memory is one copy for any strides.
Order memory_order(const View& view) {
  Order order;
  order.kind = AxisOrder::c;
  if (view.c_order) return order;
  const auto ndim = static_cast<size_t>(view.ndim);
  std::iota(order.axes, order.axes + ndim, uint8_t{0});
  if (ndim < 2) return order;
  if (view.f_order) {
    std::reverse(order.axes, order.axes + ndim);
    order.kind = AxisOrder::fortran;
    return order;
  }
  const auto distance = [&](uint8_t axis) { return view.shape[axis] > 1 ? std::llabs(view.strides[axis]) : INT64_MAX; };
  std::stable_sort(order.axes, order.axes + ndim, [&](uint8_t a, uint8_t b) { return distance(a) > distance(b); });
  if (!std::is_sorted(order.axes, order.axes + ndim)) order.kind = AxisOrder::listed;
  return order;
}

std::string shape_text(int ndim, const int64_t* shape) {
  std::string text = "(";
  for (int i = 0; i < ndim; ++i) text += std::to_string(shape[i]) + (ndim == 1 || i + 1 < ndim ? "," : "");
  return text + ")";
}

bool same_dtype(const View& view, const RegionLayout& region) {
  if (view.dtype_text == region.dtype_text) return true;
  return py::module_::import("velocpy.arrays").attr("same_dtype")(view.dtype_text, region.dtype_text).cast<bool>();
}

void require_writable(const View& view, const Label& label) {
  if (!view.writable && view.library == Library::torch) {
    raise_invalid("the destination of region " + label.spelled() +
                  " is a conjugated or negated view: its memory holds other numbers than it shows. Restore into the tensor below it.");
  }
  if (!view.writable)
    raise_invalid("the destination of region " + label.spelled() + " is read-only; restore into an array that may be written.");
  if (view.nbytes == 0) return;  // numpy gives empty arrays strides of 0
  for (int i = 0; i < view.ndim; ++i) {
    if (view.shape[i] > 1 && view.strides[i] == 0) {
      raise_invalid("the destination of region " + label.spelled() +
                    " repeats its elements (a stride is 0); restore into an array of its own.");
    }
  }
  if (repeats_elements(view)) {
    raise_invalid("the destination of region " + label.spelled() +
                  " has elements that overlap in memory; restore into an array of its own.");
  }
}

// part: what of the region is wanted; null: all of it.
void require_match(const View& view, const RegionLayout& region, const Part* part, const Label& label) {
  require_writable(view, label);
  const std::string wanted = part == nullptr ? ", the region " : ", the part of the region that is wanted ";
  if (view.library == Library::raw) {
    const int64_t bytes = part == nullptr ? region.nbytes : part->nbytes();
    if (view.nbytes != bytes) {
      raise_invalid("the destination of region " + label.spelled() + " has " + std::to_string(view.nbytes) + " bytes" + wanted + "has " +
                    std::to_string(bytes) + ".");
    }
    if (view.place == VELOC_PLACE_HOST && !writable(reinterpret_cast<uint64_t>(view.data), view.nbytes)) {
      raise_invalid("the destination of region " + label.spelled() + " is memory that may not be written.");
    }
    return;
  }
  const std::vector<int64_t>& shape = part == nullptr ? region.shape : part->shape();
  if (view.ndim != static_cast<int>(shape.size()) || !std::equal(shape.begin(), shape.end(), view.shape)) {
    raise_invalid("the destination of region " + label.spelled() + " has the shape " + shape_text(view.ndim, view.shape) + wanted +
                  shape_text(static_cast<int>(shape.size()), shape.data()) + ".");
  }
  if (!same_dtype(view, region)) {
    raise_invalid("the destination of region " + label.spelled() + " has the dtype " + std::string(view.dtype_text) + ", the region " +
                  region.dtype_text + "; a restore does not convert.");
  }
}

}  // namespace

RegionList::RegionList(size_t expected) {
  regions_.reserve(expected);
  owners_.reserve(expected);
}

void RegionList::add(View* view, const uint8_t* order, int64_t offset) {
  veloc_region& region = regions_.emplace_back();
  region.data = view->nbytes > 0 ? view->data : g_nothing;
  region.offset = offset;
  region.nbytes = view->nbytes;
  region.itemsize = 1;
  region.place = view->place;
  if (view->place != VELOC_PLACE_HOST && view->stream == 0) devices_.add(view->library, view->place);
  if (view->place != VELOC_PLACE_HOST && view->stream != 0) streams_.add(view->stream);
  owners_.push_back(std::move(view->owner));
  if (view->c_order || view->nbytes == 0) return;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];
  int axes = 0;
  for (int i = 0; i < view->ndim; ++i) {
    const int64_t extent = view->shape[order[i]];
    const int64_t stride = view->strides[order[i]];
    if (extent == 1) continue;
    if (axes > 0 && strides[axes - 1] == stride * extent) {
      shape[axes - 1] *= extent;
      strides[axes - 1] = stride;
      continue;
    }
    shape[axes] = extent;
    strides[axes] = stride;
    ++axes;
  }
  int64_t element = view->itemsize;
  if (axes > 0 && strides[axes - 1] == element && element <= kLargestElement / shape[axes - 1]) element *= shape[--axes];
  if (axes == 1 && strides[0] == element) axes = 0;
  region.ndim = axes;
  region.itemsize = static_cast<int32_t>(axes == 0 ? 1 : element);
  numbers_.insert(numbers_.end(), shape, shape + axes);
  numbers_.insert(numbers_.end(), strides, strides + axes);
}

const veloc_region* RegionList::seal() {
  const int64_t* at = numbers_.data();
  for (veloc_region& region : regions_) {
    if (region.ndim == 0) continue;
    region.shape = at;
    region.strides = at + region.ndim;
    at += 2 * region.ndim;
  }
  return regions_.data();
}

void RegionList::add_part(veloc_part part, const std::vector<int64_t>& numbers) {
  parts_.push_back(part);
  part_numbers_.insert(part_numbers_.end(), numbers.begin(), numbers.end());
}

const veloc_part* RegionList::seal_parts() {
  if (parts_.empty()) return nullptr;
  const int64_t* at = part_numbers_.data();
  for (veloc_part& part : parts_) {
    if (part.ndim == 0) continue;
    part.shape = at;
    part.strides = at + part.ndim;
    at += 2 * part.ndim;
  }
  return parts_.data();
}

namespace {

std::string_view bytes_of(py::handle structure) {
  char* bytes;
  Py_ssize_t length;
  if (PyBytes_AsStringAndSize(structure.ptr(), &bytes, &length) != 0) throw py::error_already_set();
  return {bytes, static_cast<size_t>(length)};
}

bool is_sequence(py::handle regions) { return PyTuple_Check(regions.ptr()); }

size_t count_of(py::handle regions) {
  trim_dtypes();
  const Py_ssize_t count = PyObject_Size(regions.ptr());
  if (count < 0) throw py::error_already_set();
  return static_cast<size_t>(count);
}

int64_t elements_of(const View& view) {
  int64_t count = 1;
  for (int i = 0; i < view.ndim; ++i) {
    if (view.shape[i] == 0) return 0;
    if (__builtin_mul_overflow(count, view.shape[i], &count)) return INT64_MAX;
  }
  return count;
}

void add_source(Sources* sources, const Label& label, const char* name, int64_t length, py::handle array, py::handle stream) {
  View view;
  view.fill(array, label, stream);
  if (view.ndim > kMaxDims) raise_invalid("region " + label.spelled() + " has more than 64 axes.");
  if (view.itemsize == 0 && elements_of(view) > kMostEmpty)
    raise_invalid("region " + label.spelled() + " has too many elements without bytes.");
  if (view.itemsize > INT32_MAX) raise_invalid("region " + label.spelled() + " has elements of more than 2 GiB.");
  const Order order = memory_order(view);
  const int64_t offset = sources->layout.add(name, length, view.library, view.place, view.dtype_text, view.itemsize, view.ndim, view.shape,
                                             order.kind, order.axes, view.nbytes);
  sources->list.add(&view, order.axes, offset);
}

}  // namespace

Sources::Sources(py::handle regions, py::handle structure, py::handle stream)
    : list(count_of(regions)), layout(is_sequence(regions), !structure.is_none(), count_of(regions)) {
  if (is_sequence(regions)) {
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(regions.ptr()));
    for (size_t i = 0; i < count; ++i) add_source(this, {{}, i}, "", 0, PyTuple_GET_ITEM(regions.ptr(), i), stream);
    return;
  }
  PyObject* name;
  PyObject* array;
  Py_ssize_t position = 0;
  while (PyDict_Next(regions.ptr(), &position, &name, &array)) {
    if (!PyUnicode_Check(name)) raise_wrong_type("a region's name is a str, not " + type_name(name) + ".");
    std::string own;
    const char* text;
    int64_t length;
    utf8(name, &own, &text, &length);
    add_source(this, {name}, text, length, array, stream);
  }
  if (!structure.is_none()) layout.finish(bytes_of(structure));
}

RegionList destinations(const Layout& layout, const std::vector<int32_t>& select, const std::vector<py::object>& into, py::handle stream,
                        const std::vector<py::object>& parts) {
  trim_dtypes();
  RegionList list(select.size());
  Spans spans;
  for (size_t i = 0; i < select.size(); ++i) {
    const auto number = static_cast<size_t>(select[i]);
    const RegionLayout& region = layout.regions[number];
    const Label label = layout.label(number);
    std::optional<Part> part;
    if (!parts.empty() && parts[i]) part.emplace(py::reinterpret_borrow<py::tuple>(parts[i]), region, label);
    View view;
    view.fill(into[i], label, stream);
    require_match(view, region, part ? &*part : nullptr, label);
    spans.add(view, number);
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    if (part) {
      std::vector<int64_t> numbers;
      const veloc_part raw = part->raw(&numbers);
      list.add_part(raw, numbers);
      if (view.library != Library::raw) part->align(&view, &shape, &strides);
    } else if (!parts.empty()) {
      list.add_part({0, region.nbytes, nullptr, nullptr, 0, 0}, {});
    }
    if (view.library == Library::raw || view.ndim == 0) {
      list.add(&view, nullptr, 0);
      continue;
    }
    // c_order describes the destination alone; the bytes come in slot order.
    view.c_order = view.c_order && std::is_sorted(region.order.begin(), region.order.end());
    list.add(&view, region.order.data(), 0);
  }
  size_t one, other;
  if (spans.shared(&one, &other)) {
    raise_invalid("the destinations of the regions " + layout.label(one).spelled() + " and " + layout.label(other).spelled() +
                  " overlap in memory; give each an array of its own.");
  }
  return list;
}

}  // namespace velocpy
