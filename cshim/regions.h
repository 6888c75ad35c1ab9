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
  // Says what of a region the view that is added last takes. Either all views of a list have a part, or none.
  void add_part(veloc_part part, const std::vector<int64_t>& numbers);

  // Completes the list after the last add; the result is valid while the list is.
  const veloc_region* seal();
  // Likewise the parts; null if there are none.
  const veloc_part* seal_parts();
  size_t size() const { return regions_.size(); }
  // The streams of a call on these regions: see Streams::of.
  Streams streams(py::handle named) const { return Streams::of(named, devices_, streams_); }
  std::vector<py::object>& owners() { return owners_; }

 private:
  std::vector<veloc_region> regions_;
  std::vector<int64_t> numbers_;  // shapes and strides, one region after the other
  std::vector<veloc_part> parts_;
  std::vector<int64_t> part_numbers_;
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
// region, or of the part of it. Raises InvalidArgument before any byte moves. Raw memory takes the bytes in slot order. stream: the
// caller's. parts: what of each region is wanted, as Part takes it, null for all of it; empty: whole regions.
RegionList destinations(const Layout& layout, const std::vector<int32_t>& select, const std::vector<py::object>& into, py::handle stream,
                        const std::vector<py::object>& parts);

}  // namespace velocpy
