// The description of a checkpoint: names, dtypes and shapes of its regions, and their positions in the slot. To the core it is opaque
// bytes.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "label.h"
#include "velocpy_abi.h"

namespace velocpy {

namespace py = pybind11;

// The library that an array came from, and that a restore returns arrays of.
enum class Library : uint8_t { numpy = 0, torch = 1, raw = 2, cupy = 3, cuda = 4 /* whatever has __cuda_array_interface__ */ };

// The axes of an array in their order in the slot, slowest first.
enum class AxisOrder : uint8_t { c = 0, fortran = 1, listed = 2 };

struct RegionLayout {
  py::object name;  // str; None in a sequence
  Library library = Library::numpy;
  int32_t place = VELOC_PLACE_HOST;  // place of the captured array
  std::string dtype_text;
  mutable py::object dtype;  // numpy.dtype; null until first use
  int64_t itemsize = 0;
  int64_t offset = 0;
  int64_t nbytes = 0;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // bytes, dense in the slot
  std::vector<uint8_t> order;
};

struct Layout {
  bool sequence = false;
  std::optional<std::string> structure;  // of a tree: how velocpy.tree assembles the regions
  std::vector<RegionLayout> regions;
  std::unordered_map<std::string, int32_t> index;  // by UTF-8 name

  // Name or number of a region, for errors; the number if it has no name.
  Label label(size_t region) const;
  py::object region_label(size_t region) const { return label(region).object(); }
  // Index of a region by name or, in a sequence, by number; raises an InvalidArgument that lists the valid ones.
  int32_t find(py::handle name) const;
};

// Writes a layout region by region and assigns the offsets: 64-byte aligned for regions below 64 KiB, page-aligned for larger ones.
// So a memory copy runs at full speed, and a thousand small regions do not take a page each.
class LayoutWriter {
 public:
  // tree: the caller passes its structure to finish() later.
  LayoutWriter(bool sequence, bool tree, size_t regions);

  // Appends a region and returns its offset. order: axes by decreasing distance, of length ndim; null with c and fortran.
  // Raises InvalidArgument when the slot would pass 2^62 bytes.
  int64_t add(const char* name, int64_t name_length, Library library, int32_t place, std::string_view dtype_text, int64_t itemsize,
              int ndim, const int64_t* shape, AxisOrder kind, const uint8_t* order, int64_t nbytes);

  // Appends the structure of a tree, after all regions.
  void finish(std::string_view structure) { bytes_.append(structure); }

  const std::string& bytes() const { return bytes_; }
  int64_t slot_bytes() const { return end_; }

 private:
  std::string bytes_;
  int64_t end_ = 0;
};

// Reads bytes that LayoutWriter wrote; raises InvalidArgument if they are not a layout.
std::shared_ptr<const Layout> read_layout(const char* data, size_t length);

// Raises InvalidArgument unless the regions fit a slot of that many bytes: inside of it, ascending, disjoint, and each of the size of
// its elements. Layouts that this process wrote need no check; all others do.
void check_layout(const Layout& layout, int64_t slot_bytes);

// The numpy dtype of a region; created on the first call.
py::object dtype_of_region(const RegionLayout& region);

// Layouts by the core's id. Bounded; an evicted one costs a call into the core.
class LayoutCache {
 public:
  std::shared_ptr<const Layout> find(uint64_t id) const;
  void put(uint64_t id, std::shared_ptr<const Layout> layout);

 private:
  std::unordered_map<uint64_t, std::shared_ptr<const Layout>> by_id_;
};

}  // namespace velocpy
