// The caller's arrays as regions of the contract: sources with their layout, destinations validated against one. No bytes are copied
// here.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "layout.h"
#include "streams.h"
#include "velocpy_abi.h"
#include "view.h"

namespace velocpy {

// A list of veloc_region that owns their shapes and strides.
class RegionList {
 public:
  explicit RegionList(size_t expected);

  // Appends the view with its axes in the given order. Merges adjacent axes, and folds a contiguous innermost part into the element.
  // Takes over the view's owner.
  void add(View* view, const uint8_t* order, int64_t offset);

  // Completes the list after the last add; the result is valid while the list is.
  const veloc_region* seal();
  size_t size() const { return regions_.size(); }
  // The streams of a call on these regions: see Streams::of.
  Streams streams(py::handle named) const { return Streams::of(named, devices_, streams_); }
  std::vector<py::object>& owners() { return owners_; }

 private:
  std::vector<veloc_region> regions_;
  std::vector<int64_t> numbers_;  // shapes and strides, one region after the other
  std::vector<py::object> owners_;
  Devices devices_;
  Streams streams_;  // named by the arrays
};

// Sources of a checkpoint from a dict of str to arrays, or a tuple of arrays, that no other code can change meanwhile. stream: the
// caller's. structure: bytes that describe how a tree is assembled from the arrays of the dict, or None.
struct Sources {
  Sources(py::handle regions, py::handle structure, py::handle stream);

  RegionList list;
  LayoutWriter layout;
};

// Destinations of a restore: one array per index of select, in the same order, each writable and with the shape and the dtype of its
// region. Raises InvalidArgument before any byte moves. Raw memory takes the bytes of the region in slot order. stream: the caller's.
RegionList destinations(const Layout& layout, const std::vector<int32_t>& select, const std::vector<py::object>& into, py::handle stream);

}  // namespace velocpy
