#include "overlap.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace velocpy {
namespace {

constexpr int kComparisons = 1000;  // bounds the work on interleaved arrays, so that it never costs more than their restore

// The byte range from the first element to the end of the last one.
void bounds(const View& view, int64_t* low, int64_t* high) {
  *low = reinterpret_cast<int64_t>(view.data);
  *high = *low + view.itemsize;
  for (int i = 0; i < view.ndim; ++i) {
    const int64_t reach = (view.shape[i] - 1) * view.strides[i];
    (reach < 0 ? *low : *high) += reach;
  }
}

}  // namespace

bool repeats_elements(const View& view) {
  if (view.nbytes == 0 || view.c_order || view.f_order) return false;
  int64_t low, high;
  bounds(view, &low, &high);
  if (high - low < view.nbytes) return true;
  for (int i = 0; i < view.ndim; ++i) {
    if (view.shape[i] < 2) continue;
    const int64_t stride = std::llabs(view.strides[i]);
    if (stride < view.itemsize) return true;
    for (int j = 0; j < i; ++j) {
      if (view.shape[j] < 2) continue;
      // other / common steps along one axis reach the same byte as stride / common steps along the other.
      const int64_t other = std::llabs(view.strides[j]);
      const int64_t common = std::gcd(stride, other);
      if (other / common < view.shape[i] && stride / common < view.shape[j]) return true;
    }
  }
  return false;
}

void Spans::add(const View& view, size_t number) {
  if (view.nbytes == 0) return;
  Span span{};
  bounds(view, &span.low, &span.high);
  span.dense = span.high - span.low == view.nbytes;
  span.number = number;
  if (!span.dense) {
    span.data = reinterpret_cast<int64_t>(view.data);
    span.itemsize = view.itemsize;
    span.shape.assign(view.shape, view.shape + view.ndim);
    span.strides.assign(view.strides, view.strides + view.ndim);
  }
  spans_.push_back(std::move(span));
}

bool Spans::meet(const Span& a, const Span& b) {
  if (a.dense && b.dense) return true;
  const auto described = [](const Span& span) -> py::tuple {
    const int64_t one = 1, length = span.high - span.low;
    if (span.dense) return py::make_tuple(span.low, one, py::make_tuple(length), py::make_tuple(one));
    return py::make_tuple(span.data, span.itemsize, py::tuple(py::cast(span.shape)), py::tuple(py::cast(span.strides)));
  };
  return py::module_::import("velocpy.arrays").attr("share_memory")(described(a), described(b)).cast<bool>();
}

bool Spans::shared(size_t* one, size_t* other) {
  if (spans_.size() < 2) return false;
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return a.low < b.low; });
  int compared = 0;
  for (size_t i = 0; i < spans_.size(); ++i) {
    for (size_t j = i + 1; j < spans_.size() && spans_[j].low < spans_[i].high; ++j) {
      if (++compared > kComparisons) return false;
      if (!meet(spans_[i], spans_[j])) continue;
      *one = std::min(spans_[i].number, spans_[j].number);
      *other = std::max(spans_[i].number, spans_[j].number);
      return true;
    }
  }
  return false;
}

}  // namespace velocpy
