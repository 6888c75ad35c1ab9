// The memory of a lease: it keeps restored bytes alive for the arrays over them.
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

// Base object of every array of a lease. The last reference releases the lease: without waiting, in any thread, also after close and
// at the end of the interpreter. In a forked child it does nothing.
class LeaseMemory {
 public:
  // Owns the lease from here on; the caller must call describe() first. streams: those on which the caller may use it, in addition to
  // those that are current when it ends.
  LeaseMemory(const veloc_outcome& outcome, const std::vector<uint64_t>& streams);
  ~LeaseMemory();
  LeaseMemory(const LeaseMemory&) = delete;
  LeaseMemory& operator=(const LeaseMemory&) = delete;

  void describe(std::shared_ptr<const Layout> layout, std::vector<int32_t> select);

  // writable, labels, find, used_on and meta take the lease.
  bool writable() {
    take();
    return owned();
  }
  bool owned() const { return (flags_ & VELOC_OUT_WRITABLE) != 0; }

  // The caller uses the lease. That consumes a checkpoint restored for the last time; a lease that ends before restores it.
  void take();
  // The lease comes from a loop over a plan: if it restores its checkpoint, the loop's restore is due again.
  void give_due(DueRestore due) { due_ = std::move(due); }

  // Names of the restored regions; numbers in a sequence.
  py::list labels();
  // The same for display: it does not take the lease.
  py::list names() const;
  // Index of a restored region; raises KeyError for a mapping, IndexError for a sequence.
  int32_t find(py::handle label);
  // Place of the bytes.
  int32_t place() const { return place_; }
  // Place of a region's array when it was captured.
  int32_t home(int32_t region) const { return layout_->regions[static_cast<size_t>(region)].place; }
  // Adds a stream that reads the lease, ordered after the transfer of the bytes. Their memory is not overwritten before the work
  // queued in the stream is done.
  void used_on(uint64_t stream);
  Library library(int32_t region) const { return layout_->regions[static_cast<size_t>(region)].library; }
  // The address of a region's first byte.
  uint64_t address(int32_t region) const;
  int64_t nbytes(int32_t region) const { return layout_->regions[static_cast<size_t>(region)].nbytes; }
  // All bytes of a region in a NumPy array of its own; waits for the copy if they are on a device.
  py::array fetched(int32_t region) const;
  // (dtype text, element bytes, shape, strides in bytes)
  py::tuple description(int32_t region) const;

  // A NumPy array of the region whose base is self; read-only unless the lease is writable.
  static py::array array(py::object self, int32_t region);
  // All bytes of the region, one-dimensional and always writable: for libraries without read-only arrays.
  static py::array raw(py::object self, int32_t region);

  // A tensor of that type over the region, which keeps self alive; None if the slow path is needed: empty regions, rare dtypes, older
  // torch.
  static py::object tensor(py::object self, int32_t region, py::handle type);

  // The array of a region that lies where it was captured, for the libraries of most arrays: torch on a device, NumPy in host memory. None
  // for others, and if the slow path is needed.
  static py::object at_home(py::object self, int32_t region);

  // A capsule of DLPack over the region. It keeps self alive, and is read-only unless the lease is writable; one without a version
  // cannot be marked read-only. None if DLPack has no code for the dtype.
  static py::object capsule(py::object self, int32_t region, bool versioned);

  // The bytes given as meta; None if there are none. Costs a call into the core.
  py::object meta();
  // The structure of a tree, in bytes; None for a mapping or a sequence. Takes the lease.
  py::object structure();
  bool sequence() const { return layout_->sequence; }
  // Numbers of the restored regions, ascending.
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
  bool untaken_;  // restored for the last time, and not used yet
  std::optional<DueRestore> due_;
  Streams streams_;
};

// Errors that destructors could not raise, for the log: each is returned once. Needs the GIL.
std::vector<std::string> take_release_failures();

}  // namespace velocpy
