// The memory of a lease: what keeps restored bytes alive under the arrays that show them.
#pragma once

#include <pybind11/numpy.h>

#include <memory>
#include <optional>
#include <vector>

#include "due.h"
#include "layout.h"
#include "loader.h"
#include "streams.h"

namespace velocpy {

// Base object of every array of a lease. The last reference gives the lease back: without waiting, in any thread, also after close and
// at the end of the interpreter; in a forked child it does nothing.
class LeaseMemory {
 public:
  // Owns the lease from here on; describe() must follow before anything else.
  // streams: those on which the caller may use it, beside those that are current when it ends.
  LeaseMemory(const veloc_outcome& outcome, const std::vector<uint64_t>& streams);
  ~LeaseMemory();
  LeaseMemory(const LeaseMemory&) = delete;
  LeaseMemory& operator=(const LeaseMemory&) = delete;

  void describe(std::shared_ptr<const Layout> layout, std::vector<int32_t> select);

  // This, labels, find, used_on and meta take the lease.
  bool writable() {
    take();
    return owned();
  }
  bool owned() const { return (flags_ & VELOC_OUT_WRITABLE) != 0; }

  // The caller uses the lease. A checkpoint restored for the last time is consumed by that; a lease that ends before gives it back.
  void take();
  // It was given by a loop over a plan: when the checkpoint is given back, the loop's restore is due again.
  void give_due(DueRestore due) { due_ = std::move(due); }

  // Names of the regions restored; numbers in a sequence.
  py::list labels();
  // The same, for showing them: the lease is not taken.
  py::list names() const;
  // Index of a restored region; raises KeyError or IndexError, as the mapping or the sequence it is.
  int32_t find(py::handle label);
  // Where the bytes lie now.
  int32_t place() const { return place_; }
  // Where the array of a region was when it was captured.
  int32_t home(int32_t region) const { return layout_->regions[static_cast<size_t>(region)].place; }
  // One more stream that reads it, behind what still brings the bytes: their room is not written before what is queued there has happened.
  void used_on(uint64_t stream);
  Library library(int32_t region) const { return layout_->regions[static_cast<size_t>(region)].library; }
  // The address of a region's first byte.
  uint64_t address(int32_t region) const;
  int64_t nbytes(int32_t region) const { return layout_->regions[static_cast<size_t>(region)].nbytes; }
  // All bytes of a region in a NumPy array of their own; waits for the copy when they lie on a device.
  py::array fetched(int32_t region) const;
  // (dtype text, element bytes, shape, strides in bytes)
  py::tuple description(int32_t region) const;

  // A NumPy array of the region whose base is self; read-only unless the lease is writable.
  static py::array array(py::object self, int32_t region);
  // All bytes of the region, one-dimensional and writable whatever the lease is: for libraries that cannot say read-only.
  static py::array raw(py::object self, int32_t region);

  // A tensor of that type over the region, which keeps self; None where that takes the long way: empty regions, rare dtypes, older torch.
  static py::object tensor(py::object self, int32_t region, py::handle type);

  // A capsule of DLPack over the region, which keeps self and is read-only unless the lease is writable; None where DLPack has no word for
  // the dtype. A capsule without a version cannot say that it is read-only.
  static py::object capsule(py::object self, int32_t region, bool versioned);

  // The bytes given as meta; None without. Costs a call into the core.
  py::object meta();
  // The structure of a tree, in bytes; None of a mapping or a sequence. The lease is taken.
  py::object structure();
  bool sequence() const { return layout_->sequence; }
  // Numbers of the regions restored, ascending.
  const std::vector<int32_t>& restored_regions() const { return select_; }

 private:
  bool restored(int32_t region) const;
  char* data(const RegionLayout& region) const { return base_ + region.offset; }

  uint64_t handle_;
  std::shared_ptr<const Layout> layout_;
  std::vector<int32_t> select_;  // ascending
  char* base_;
  int64_t slot_bytes_;
  int64_t meta_length_;
  int32_t flags_;
  int32_t place_;
  bool untaken_;  // for the last time, and not used yet
  std::optional<DueRestore> due_;
  Streams streams_;
};

// What destructors could not raise, for the log: taken out once. Needs the GIL.
std::vector<std::string> take_release_failures();

}  // namespace velocpy
